import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type Logger, systemClock } from '@keelson/core/runtime';
import { createPinoLogger } from '@keelson/pino-logger';
import type { ServerOptions } from '../config/options.ts';
import type { RunningServer } from './serve.ts';

/** The node of `keelson up`. */
export interface LocalNode {
  /** Stops the agent. Its containers continue to run. */
  stop(): Promise<void>;
}

/** What the node requires of the server in the same process. */
export type ServerOfNode = Pick<RunningServer, 'kubeconfig' | 'authorityFile' | 'localAgents'>;

/**
 * Runs a node agent in this process, with containers as processes of the machine. It does not change the machine: it
 * creates no mounts, cgroups, packet filters or kernel settings, and all its files are below the data directory. It
 * serves one port of the loopback interface, chosen by the system, to users whom the server authorizes: the server
 * itself and administrators. It evicts no pod, because the machine is not dedicated to this node. When the agent cannot
 * start, for example because the system is not Linux, a warning is logged and the server runs without a node.
 *
 * The agent is loaded on demand.
 */
export async function startNode(
  options: Pick<ServerOptions, 'data' | 'logLevel'>,
  server: ServerOfNode,
): Promise<LocalNode> {
  const logger = createPinoLogger(options.logLevel).child({ component: 'node' });
  try {
    return await start(join(options.data, 'node'), server, logger);
  } catch (err) {
    logger.warn('the node could not be started; no pods run in this process', { err });
    return { stop: () => Promise.resolve() };
  }
}

async function start(
  folder: string,
  { kubeconfig, authorityFile, localAgents }: ServerOfNode,
  logger: Logger,
): Promise<LocalNode> {
  const [{ noMounter, parseOptions, resolveConfig, runAgent }, { createProcessRuntime }] = await Promise.all([
    import('@keelson/agent'),
    import('@keelson/runtime-process'),
  ]);
  const words = [
    `--clusterconfig=${kubeconfig}`,
    `--root-dir=${folder}`,
    `--cert-dir=${join(folder, 'pki')}`,
    '--address=127.0.0.1',
    '--port=0',
    `--client-ca-file=${authorityFile}`,
    '--anonymous-auth=false',
    '--authorization-mode=Webhook',
    '--read-only-port=0',
    '--healthz-port=0',
    '--stats-port=0',
    '--make-iptables-util-chains=false',
    '--cgroups-per-qos=false',
    '--eviction-hard=',
    '--enforce-node-allocatable=',
  ];
  const { config, warnings } = resolveConfig(parseOptions(words), { hostname, fileExists: existsSync });
  for (const warning of warnings) logger.warn(warning);
  const clock = systemClock;
  const engine = await createProcessRuntime({
    stateDirectory: join(folder, 'runtime'),
    imageSources: [join(folder, 'images')],
    registries: {},
    clock,
    logger,
  });
  try {
    const agent = await runAgent({
      config: { ...config, runtime: { kind: 'process' } },
      effective: {},
      engine,
      logRoot: join(folder, 'log'),
      mounter: noMounter,
      clock,
      logger,
    });
    const { port } = agent.servers;
    if (port !== undefined) localAgents.set(config.nodeName, port);
    return {
      async stop() {
        localAgents.delete(config.nodeName);
        await agent.stop();
        await engine.runtime[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await engine.runtime[Symbol.asyncDispose]();
    throw error;
  }
}
