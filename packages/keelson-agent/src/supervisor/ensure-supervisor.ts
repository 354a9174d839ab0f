import type { TLSSocket } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { MachineError, type ServingPair } from '@keelson/agent';
import type { Clock, Logger } from '@keelson/core/runtime';
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

/** Time limit for a running supervisor to begin to listen, when the agent that started it was killed meanwhile. */
const listenMs = 30_000;
const defaultProbeTimeoutMs = 5000;

/**
 * Ensures that the supervisor of this root directory runs with these options: uses the running one, replaces it when
 * its options differ or it does not answer, and starts one when none runs.
 *
 * @returns a connection to it, whose end shows that the supervisor has ended
 * @throws MachineError when another process listens at its endpoint, or it cannot be started
 */
export async function ensureSupervisor(ensure: EnsureOptions): Promise<TLSSocket> {
  const { options, pair, clock, logger, probeTimeoutMs: timeoutMs = defaultProbeTimeoutMs } = ensure;
  const { host, port, rootDir } = options;
  const probe = () => probePort({ host, port, pair, timeoutMs });
  const running = await findRunning(supervisorPlace(rootDir));
  if (running !== undefined) {
    const connection = isDeepStrictEqual(running.options, JSON.parse(JSON.stringify(options)))
      ? await connectTo(running, probe, clock)
      : 'its options have changed';
    if (typeof connection !== 'string') {
      logger.info('supervisor already runs', { pid: running.pid, endpoint: endpointText(options) });
      return connection;
    }
    logger.info('supervisor replaced', { pid: running.pid, reason: connection });
    await endSupervisor(running, clock, logger);
  }
  checkEndpointFree(await probe(), options);
  await startSupervisor(options);
  const listener = await probe();
  if (listener.kind !== 'own') throw new MachineError('the supervisor of runtime-b ended right after its start');
  logger.info('supervisor started', {
    pid: (await findRunning(supervisorPlace(rootDir)))?.pid,
    endpoint: endpointText(options),
  });
  return listener.socket;
}

/** The connection to a running supervisor, or the reason why it cannot be used. */
async function connectTo(
  running: RunningSupervisor,
  probe: () => Promise<Listener>,
  clock: Clock,
): Promise<TLSSocket | string> {
  let listener = await probe();
  const isDecided = async () => {
    if (listener.kind !== 'none' || !(await isAlive(running))) return true;
    listener = await probe();
    return listener.kind !== 'none';
  };
  await waitUntil(isDecided, listenMs, clock);
  if (listener.kind === 'own') return listener.socket;
  if (listener.kind === 'silent') return 'it does not answer';
  if (listener.kind !== 'none') return 'it uses another key';
  return (await isAlive(running)) ? 'it does not listen' : 'it has ended';
}

/** @throws MachineError when a process listens at the endpoint */
function checkEndpointFree(listener: Listener, options: SupervisorOptions): void {
  if (listener.kind === 'none') return;
  const at = `--runtime-b-api-endpoint: ${endpointText(options)}`;
  switch (listener.kind) {
    case 'own':
      listener.socket.destroy();
      throw new MachineError(
        `${at} is used by a supervisor of ${options.rootDir} whose record is missing there; end that process manually`,
      );
    case 'foreign':
      throw new MachineError(
        `${at} is used by the supervisor of another agent, which has another --root-dir; ` +
          'set a different endpoint for each agent',
      );
    case 'silent':
      throw new MachineError(`${at} is used by a process that does not answer`);
    case 'other':
      throw new MachineError(
        `${at} is used by a process other than the supervisor of ${options.rootDir}: ${listener.reason}`,
      );
  }
}
