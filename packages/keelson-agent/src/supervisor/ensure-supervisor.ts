import type { TLSSocket } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { MachineError, type ServingPair } from '@keelson/agent';
import type { Clock, Logger } from '@keelson/core';
import { endSupervisor } from './end-supervisor.ts';
import { type Listener, probePort } from './probe-port.ts';
import { isAlive } from './process-identity.ts';
import { findRunning, type RunningSupervisor } from './running-record.ts';
import { startSupervisor } from './start-supervisor.ts';
import { endpointText, type SupervisorOptions } from './supervisor-options.ts';
import { supervisorPlace } from './supervisor-place.ts';
import { waitUntil } from './wait-until.ts';

export interface EnsureOptions {
  readonly options: SupervisorOptions;
  readonly pair: ServingPair;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Default: 5 s. */
  readonly probeTimeoutMs?: number;
}

/** One that was being started when its agent was killed gets there by itself. */
const listenMs = 30_000;
const defaultProbeTimeoutMs = 5000;

/**
 * Sees to it that the supervisor of this root directory runs with these options: takes the one that runs, replaces it
 * when its options are others or it does not answer, starts one when there is none.
 *
 * @returns a connection to it, by which it is noticed that it goes
 * @throws MachineError when somebody else listens at its address, or it cannot be started
 */
export async function ensureSupervisor(ensure: EnsureOptions): Promise<TLSSocket> {
  const { options, pair, clock, logger, probeTimeoutMs: timeoutMs = defaultProbeTimeoutMs } = ensure;
  const { host, port, rootDir } = options;
  const probe = () => probePort({ host, port, pair, timeoutMs });
  const running = await findRunning(supervisorPlace(rootDir));
  if (running !== undefined) {
    const why = isDeepStrictEqual(running.options, JSON.parse(JSON.stringify(options)))
      ? await answerOf(running, probe, clock)
      : 'its options have changed';
    if (typeof why !== 'string') {
      logger.info('supervisor runs already', { pid: running.pid, endpoint: endpointText(options) });
      return why;
    }
    logger.info('supervisor is replaced', { pid: running.pid, reason: why });
    await endSupervisor(running, clock, logger);
  }
  refuseOthers(await probe(), options);
  await startSupervisor(options);
  const listener = await probe();
  if (listener.kind !== 'own') throw new MachineError('the supervisor of runtime-b has ended right after its start');
  logger.info('supervisor started', {
    pid: (await findRunning(supervisorPlace(rootDir)))?.pid,
    endpoint: endpointText(options),
  });
  return listener.socket;
}

/** The connection to a supervisor that runs, else why it is of no use. */
async function answerOf(
  running: RunningSupervisor,
  probe: () => Promise<Listener>,
  clock: Clock,
): Promise<TLSSocket | string> {
  let listener = await probe();
  const isDecided = async () => {
    if (listener.kind !== 'nobody' || !(await isAlive(running))) return true;
    listener = await probe();
    return listener.kind !== 'nobody';
  };
  await waitUntil(isDecided, listenMs, clock);
  if (listener.kind === 'own') return listener.socket;
  if (listener.kind === 'silent') return 'it does not answer';
  if (listener.kind !== 'nobody') return 'it does not have the key of now';
  return (await isAlive(running)) ? 'it does not listen' : 'it has ended';
}

/** @throws MachineError unless nobody listens */
function refuseOthers(listener: Listener, options: SupervisorOptions): void {
  if (listener.kind === 'nobody') return;
  const at = `--runtime-b-api-endpoint: ${endpointText(options)}`;
  switch (listener.kind) {
    case 'own':
      listener.socket.destroy();
      throw new MachineError(
        `${at} is held by a supervisor of ${options.rootDir} that has no record there any more; end that process by hand`,
      );
    case 'foreign':
      throw new MachineError(
        `${at} is held by the supervisor of another agent, one with another --root-dir; give each agent an endpoint of its own`,
      );
    case 'silent':
      throw new MachineError(`${at} is held by something that does not answer; it is not used`);
    case 'other':
      throw new MachineError(
        `${at} is held by something else than the supervisor of ${options.rootDir}: ${listener.reason}; it is not used`,
      );
  }
}
