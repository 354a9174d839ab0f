import {
  boundedCall,
  type ContainerEngine,
  type ContainerId,
  type ContainerRuntime,
  type ContainerStatus,
  isRuntimeError,
  type RuntimeCapabilities,
  type RuntimeCondition,
  type RuntimeStreaming,
  withDeadlines,
} from '@keelson/container-runtime';
import { type Clock, type Logger, silentLogger, systemClock } from '@keelson/core/runtime';
import { Calls } from './api/calls.ts';
import { criCapabilities } from './capabilities.ts';
import { CriConnection } from './connection/cri-connection.ts';
import { ContainerCalls } from './container-calls.ts';
import { type EngineInfo, parseEngineInfo } from './engine-info.ts';
import { EventSource } from './event-source.ts';
import { execSync } from './exec-sync.ts';
import { ImageCalls } from './image-calls.ts';
import { inspectMachine } from './machine.ts';
import type { CriRuntimeOptions } from './options.ts';
import { pause } from './pause.ts';
import { SandboxCalls } from './sandbox-calls.ts';
import { StreamingCalls } from './streaming/streaming-calls.ts';

const defaultProbeTimeoutMs = 2000;

/**
 * Creates an engine on a CRI endpoint. The daemon may be unavailable at any time: calls fail with `Unavailable`
 * meanwhile and succeed again afterwards. The capabilities are determined once, at the creation: whether the daemon
 * supports events and, for a service of this package, the capabilities of its engine. A daemon that does not respond is
 * assumed not to support events.
 *
 * @throws `InvalidArgument` when the endpoint is malformed
 */
export async function createCriRuntime(options: CriRuntimeOptions): Promise<ContainerEngine> {
  const { endpoint, imageEndpoint = endpoint, clock = systemClock, logger = silentLogger } = options;
  const connection = new CriConnection(endpoint, logger, options.tls);
  const imageConnection =
    imageEndpoint === endpoint ? connection : new CriConnection(imageEndpoint, logger, options.tls);
  const source = new EventSource(connection, clock, logger);
  const { name, capabilities } = await probe(connection, source, clock, logger, options.probeTimeoutMs);
  // Callers subscribe to events only when the runtime declares the capability `events`.
  if (!capabilities.events) source.close();
  const machine = inspectMachine(connection.endpoint.local, options.nodeIp);
  const sandboxes = new SandboxCalls(connection, machine, clock);
  const images = new ImageCalls(imageConnection, capabilities.pullProgress);
  const containers = new ContainerCalls(connection, sandboxes, images, machine, clock);

  const runtime: ContainerRuntime = {
    name,
    capabilities,
    streaming: streamingOf(new StreamingCalls(connection, (id) => endOf(containers, id, clock)), capabilities),
    version: async ({ signal } = {}) => {
      const {
        runtimeName = '',
        runtimeVersion = '',
        runtimeApiVersion = '',
      } = await connection.call(Calls.version, {}, signal);
      return { runtimeName, runtimeVersion, runtimeApiVersion };
    },
    status: async ({ signal } = {}) => {
      const { status } = await connection.call(Calls.status, {}, signal);
      return {
        conditions: (['RuntimeReady', 'NetworkReady'] as const).map((type) => conditionOf(type, status?.conditions)),
      };
    },
    updateConfig: async ({ podCidr }, { signal } = {}) => {
      await connection.call(Calls.updateRuntimeConfig, { runtimeConfig: { networkConfig: { podCidr } } }, signal);
    },
    runPodSandbox: (config, { signal } = {}) => sandboxes.run(config, signal),
    stopPodSandbox: (id, { signal } = {}) => sandboxes.stop(id, signal),
    removePodSandbox: (id, { signal } = {}) => sandboxes.remove(id, signal),
    podSandboxStatus: (id, { signal } = {}) => sandboxes.status(id, signal),
    listPodSandboxes: (filter, { signal } = {}) => sandboxes.list(filter, signal),
    createContainer: (sandboxId, config, { signal } = {}) => containers.create(sandboxId, config, signal),
    startContainer: (id, { signal } = {}) => containers.start(id, signal),
    stopContainer: (id, request, { signal } = {}) => containers.stop(id, request, signal),
    removeContainer: (id, { signal } = {}) => containers.remove(id, signal),
    listContainers: (filter, { signal } = {}) => containers.list(filter, signal),
    containerStatus: (id, { signal } = {}) => containers.status(id, signal),
    ...(capabilities.updateResources && {
      updateContainerResources: (id, resources, { signal } = {}) => containers.updateResources(id, resources, signal),
    }),
    reopenContainerLog: (id, { signal } = {}) => containers.reopenLog(id, signal),
    execSync: (id, request, { signal } = {}) => execSync(connection, id, request, signal),
    listContainerStats: (filter, { signal } = {}) => containers.stats(filter, signal),
    ...(capabilities.events && { events: ({ signal } = {}) => source.stream(signal) }),
    [Symbol.asyncDispose]: async () => {
      source.close();
      connection.close();
      if (imageConnection !== connection) imageConnection.close();
    },
  };
  return withDeadlines({ runtime, images }, { clock });
}

/**
 * Determines the name and the capabilities of the engine: events by opening the event stream, everything else from the
 * verbose status of a service of this package.
 */
async function probe(
  connection: CriConnection,
  source: EventSource,
  clock: Clock,
  logger: Logger,
  timeoutMs = defaultProbeTimeoutMs,
): Promise<EngineInfo> {
  let events = false;
  let reported: EngineInfo | undefined;
  try {
    await boundedCall(clock, 'GetContainerEvents', { timeoutMs }, async ({ signal }) => {
      events = await source.open(signal);
      reported = parseEngineInfo((await connection.call(Calls.status, { verbose: true }, signal)).info);
    });
  } catch (error) {
    logger.warn('the container runtime does not respond, every call tries again to connect', { err: error });
  }
  if (reported === undefined) return { name: 'cri', capabilities: criCapabilities({ events }) };
  const { name, capabilities } = reported;
  return { name, capabilities: { ...capabilities, events: events && capabilities.events } };
}

/** The streaming calls that the engine supports. */
function streamingOf(calls: StreamingCalls, { exec, attach, portForward }: RuntimeCapabilities): RuntimeStreaming {
  return {
    ...(exec && { exec: calls.exec.bind(calls) }),
    ...(attach && { attach: calls.attach.bind(calls) }),
    ...(portForward && { portForward: calls.portForward.bind(calls) }),
  };
}

type ConditionMessage = {
  type?: string | undefined;
  status?: boolean | undefined;
  reason?: string | undefined;
  message?: string | undefined;
};

function conditionOf(type: RuntimeCondition['type'], messages: readonly ConditionMessage[] = []): RuntimeCondition {
  const found = messages.find((message) => message.type === type);
  const { reason, message } = found ?? { reason: 'NotReported', message: 'the runtime does not report this condition' };
  return { type, status: found?.status ?? false, ...(reason && { reason }), ...(message && { message }) };
}

/** Polls a container until its state is `exited`, because output ends shortly before the daemon reports the exit. */
async function endOf(containers: ContainerCalls, id: ContainerId, clock: Clock): Promise<ContainerStatus | undefined> {
  for (let round = 0; round < 40; round += 1) {
    try {
      const status = await containers.status(id);
      if (status.state === 'exited') return status;
    } catch (error) {
      if (isRuntimeError(error, 'NotFound')) return undefined;
    }
    await pause(clock, 50);
  }
  return undefined;
}
