import { MachineError } from '@keelson/agent';
import { type Logger, systemClock } from '@keelson/core/runtime';
import { openAdapter } from '../adapters/load-adapter.ts';
import { type ContextConfig, noNetwork, runtimeContext } from '../adapters/runtime-context.ts';
import { identityOf } from './process-identity.ts';
import { removeRecord, writeRecord } from './running-record.ts';
import type { StartMessage } from './start-supervisor.ts';
import { endpointText, parseSupervisorOptions, type SupervisorOptions } from './supervisor-options.ts';
import { readPair } from './supervisor-pair.ts';
import { supervisorPlace } from './supervisor-place.ts';

/** Argument, logger, message channel and signals of the supervisor's process; tests replace them. */
export interface SupervisorContext {
  /** The options as JSON, the only argument of the program. */
  readonly argument: string | undefined;
  readonly logger: Logger;
  /** Sends a message to the process that started the supervisor. */
  readonly report: (message: StartMessage) => void;
  /** Resolves when the process receives SIGTERM or SIGINT. */
  readonly terminated: Promise<void>;
}

/**
 * The supervisor of runtime-b: opens the OCI runtime of one root directory and serves it as CRI to the agents of that
 * directory, one after the other.
 *
 * @returns the exit code: 0 after a termination signal, 1 after a failure
 */
export async function superviseOci({ argument, logger, report, terminated }: SupervisorContext): Promise<number> {
  // Not injected: keeps the process alive until the server listens.
  const keepAlive = setInterval(() => {}, 2 ** 30);
  try {
    await serveUntil(terminated, parseSupervisorOptions(argument), report, logger);
    return 0;
  } catch (error) {
    logger.error('supervisor failed', { err: error });
    report({ failed: error instanceof Error ? error.message : String(error) });
    return 1;
  } finally {
    clearInterval(keepAlive);
  }
}

async function serveUntil(
  terminated: Promise<void>,
  options: SupervisorOptions,
  report: (message: StartMessage) => void,
  logger: Logger,
): Promise<void> {
  const place = supervisorPlace(options.rootDir);
  const [pair, identity] = await Promise.all([readPair(place), identityOf(process.pid)]);
  if (pair === undefined || identity === undefined) throw new MachineError(`the file ${place.pair} does not exist`);
  await writeRecord(place, identity, options);
  try {
    const { binary } = options;
    const engine = await openAdapter(
      {
        adapter: 'oci',
        options: binary === undefined ? {} : { binary },
        source: '--runtime-b-path',
      },
      (adapter) => runtimeContext({ config: configOf(options), clock: systemClock, logger }, adapter),
    );
    try {
      const tls = { ...pair, peer: pair.certificate };
      const { host, port } = options;
      const { serveCriAtPort } = await import('@keelson/runtime-cri');
      const server = await serveCriAtPort({ engine, host, port, tls, logger });
      try {
        logger.info('supervisor accepts connections', { endpoint: endpointText(options), rootDir: options.rootDir });
        report({ ready: true });
        await terminated;
        logger.info('supervisor ends, containers continue to run');
      } finally {
        await server[Symbol.asyncDispose]();
      }
    } finally {
      await engine.runtime[Symbol.asyncDispose]();
    }
  } finally {
    await removeRecord(place);
  }
}

function configOf({ nodeName, rootDir, nodeIp, network }: SupervisorOptions): ContextConfig {
  return { nodeName, rootDir, api: undefined, node: { ip: nodeIp }, network: network ?? noNetwork };
}
