import { MachineError } from '@keelson/agent';
import { type Logger, systemClock } from '@keelson/core';
import { createLineLogger } from '../line-logger.ts';
import { openOci, serveAtPort } from '../runtime/runtime-packages.ts';
import { identityOf } from './process-identity.ts';
import { removeRecord, writeRecord } from './running-record.ts';
import type { StartMessage } from './start-supervisor.ts';
import { endpointText, parseSupervisorOptions, type SupervisorOptions } from './supervisor-options.ts';
import { readPair } from './supervisor-pair.ts';
import { supervisorPlace } from './supervisor-place.ts';

/** What the program gets from its process. */
export interface SupervisorContext {
  /** The options, as JSON. */
  readonly word: string | undefined;
  readonly stderr: (text: string) => void;
  /** Tells whoever started it. */
  readonly tell: (message: StartMessage) => void;
  /** Resolves when the process is asked to end. */
  readonly terminated: Promise<void>;
}

/**
 * The supervisor of runtime-b: the OCI engine of one root directory, served as CRI to the agents of that directory, one
 * after the other.
 *
 * @returns the exit code
 */
export async function superviseOci({ word, stderr, tell, terminated }: SupervisorContext): Promise<number> {
  const logger = createLineLogger(stderr, () => systemClock.now(), { component: 'supervisor', pid: process.pid });
  // Holds the process while nothing else does.
  const holding = setInterval(() => {}, 2 ** 30);
  try {
    await serveUntil(terminated, parseSupervisorOptions(word), tell, logger);
    return 0;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    logger.error('supervisor failed', { err: error });
    tell({ failed: reason });
    return 1;
  } finally {
    clearInterval(holding);
  }
}

async function serveUntil(
  terminated: Promise<void>,
  options: SupervisorOptions,
  tell: (message: StartMessage) => void,
  logger: Logger,
): Promise<void> {
  const place = supervisorPlace(options.rootDir);
  const [pair, identity] = await Promise.all([readPair(place), identityOf(process.pid)]);
  if (pair === undefined || identity === undefined) throw new MachineError(`there is no ${place.pair}`);
  await writeRecord(place, identity, options);
  try {
    const engine = await openOci({ config: configOf(options), clock: systemClock, logger }, { path: options.binary });
    try {
      const tls = { ...pair, peer: pair.certificate };
      const { host, port } = options;
      await using _ = await serveAtPort({ engine, host, port, tls, logger });
      logger.info('supervisor serves', { endpoint: endpointText(options), rootDir: options.rootDir });
      tell({ ready: true });
      await terminated;
      logger.info('supervisor ends, containers run on');
    } finally {
      await engine.runtime[Symbol.asyncDispose]();
    }
  } finally {
    await removeRecord(place);
  }
}

function configOf({ rootDir, nodeIp, network }: SupervisorOptions): Parameters<typeof openOci>[0]['config'] {
  return { rootDir, api: undefined, node: { ip: nodeIp }, network: network ?? noNetwork };
}

const noNetwork = {
  plugin: '',
  cniBinDir: '',
  cniConfDir: '',
  mtu: 0,
  hairpinMode: 'none',
  podCidr: '',
  makeIptablesUtilChains: false,
  iptablesDropBit: 0,
  iptablesMasqueradeBit: 0,
} as const;
