import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type Logger, systemClock } from '@keelson/core/runtime';
import { createPinoLogger } from '@keelson/pino-logger';
import type { ServerOptions } from '../config/options.ts';
import { FakeNodes } from '../nodes/fake-nodes.ts';
import type { RunningServer } from './serve.ts';
import type { ClusterDns } from './start-services.ts';

/** The number of nodes of `keelson up`. */
export interface NodeCounts {
  /** Nodes whose pods are processes of the machine. */
  readonly nodes: number;
  /** Nodes whose pods run nothing. */
  readonly fakeNodes: number;
}

/** The nodes of `keelson up`. */
export interface LocalNodes {
  /** Stops the agents. Their containers continue to run. */
  stop(): Promise<void>;
}

/** What the nodes require of the server in the same process. */
export type ServerOfNodes = Pick<RunningServer, 'api' | 'kubeconfig' | 'authorityFile' | 'localAgents'>;

/** The data of the agents: `node`, `node-2` and so on, in the data directory. */
export function nodeFolder(data: string, index: number): string {
  return join(data, index === 0 ? 'node' : `node-${index + 1}`);
}

/** The first node has the name of the machine, the others have a number after it. */
export function nodeName(index: number): string {
  const machine = hostname().trim().toLowerCase();
  return index === 0 ? machine : `${machine}-${index + 1}`;
}

/**
 * Starts the nodes of this process. An agent that cannot start, for example because the system is not Linux, is logged
 * as a warning, and the server runs without it.
 */
export async function startNodes(
  options: Pick<ServerOptions, 'data' | 'logLevel'>,
  { nodes, fakeNodes }: NodeCounts,
  server: ServerOfNodes,
  dns: ClusterDns | undefined,
): Promise<LocalNodes> {
  const logger = createPinoLogger(options.logLevel).child({ component: 'node' });
  const started = await Promise.all([
    ...Array.from({ length: nodes }, (_, index) =>
      start(nodeFolder(options.data, index), index, server, dns, logger).catch((err: unknown) => {
        logger.warn('the node could not be started; no pods run in this process', { err });
        return undefined;
      }),
    ),
    startFakeNodes(fakeNodes, server, logger),
  ]);
  return {
    async stop() {
      for (const node of started) await node?.stop();
    },
  };
}

async function startFakeNodes(count: number, { api }: ServerOfNodes, logger: Logger): Promise<LocalNodes | undefined> {
  if (count === 0) return undefined;
  const nodes = new FakeNodes({ client: api, clock: systemClock, logger, count });
  try {
    await nodes.start();
  } catch (err) {
    logger.warn('the fake nodes could not be started', { err });
  }
  return nodes;
}

/**
 * Runs a node agent in this process, with containers as processes of the machine. It does not change the machine: it
 * creates no mounts, cgroups, packet filters or kernel settings, and all its files are below the data directory. It
 * serves one port of the loopback interface, chosen by the system, to users whom the server authorizes: the server
 * itself and administrators. It evicts only pods that exceed their own limits of storage, because the machine is not
 * dedicated to this node. The agent is loaded on demand.
 */
async function start(
  folder: string,
  index: number,
  { kubeconfig, authorityFile, localAgents }: ServerOfNodes,
  dns: ClusterDns | undefined,
  logger: Logger,
): Promise<LocalNodes> {
  const [{ noMounter, parseOptions, resolveConfig, runAgent }, { createProcessRuntime }] = await Promise.all([
    import('@keelson/agent'),
    import('@keelson/runtime-process'),
  ]);
  const words = [
    `--clusterconfig=${kubeconfig}`,
    `--root-dir=${folder}`,
    `--cert-dir=${join(folder, 'pki')}`,
    ...(index === 0 ? [] : [`--hostname-override=${nodeName(index)}`]),
    ...(dns === undefined ? [] : [`--cluster-dns=${dns.address}`, `--cluster-domain=${dns.domain}`]),
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
    // Pods that request ephemeral storage are scheduled only on nodes that report it.
    '--feature-gates=LocalStorageCapacityIsolation=true',
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
