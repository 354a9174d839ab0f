import { join } from 'node:path';
import {
  type ContainerEngine,
  EventFeed,
  findNodeIp,
  type RuntimeCapabilities,
  RuntimeError,
  withDeadlines,
} from '@keelson/container-runtime';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { EngineHttp } from './api/engine-http.ts';
import { type ConnectedEngine, EngineLink } from './api/engine-link.ts';
import { compareVersions } from './api/negotiate.ts';
import { ContainerReader } from './containers/container-reader.ts';
import { ContainerWaits } from './containers/container-waits.ts';
import { EngineContainers } from './containers/engine-containers.ts';
import type { EngineContext, EngineRuntimeOptions } from './containers/engine-context.ts';
import { LifeTracker } from './containers/life-tracker.ts';
import { EngineRuntime } from './engine-runtime.ts';
import { watchEngine } from './events/engine-watch.ts';
import { EngineImages } from './images/engine-images.ts';
import { LogKeeper } from './logs/log-keeper.ts';
import { EngineSandboxes } from './sandboxes/engine-sandboxes.ts';
import { SandboxNetwork } from './sandboxes/sandbox-network.ts';
import { StateRecords } from './state/state-records.ts';
import { StatsReader } from './stats/container-stats.ts';
import { ContainerStreams } from './streams/container-streams.ts';

const defaultStateDirectory = '/var/lib/keelson/runtime-engine';

/**
 * Creates a runtime on the engine at the endpoint, and adopts the sandboxes and containers that earlier runtimes of the
 * same owner created there. The engine may start later, stop and start again: calls reject with `Unavailable`
 * meanwhile. An engine that does not respond yet is assumed to support every capability. Disposing of the runtime
 * leaves containers running.
 * @throws `Unsupported` when the engine is too old or the server is not a container engine, `InvalidArgument` when an
 * option is invalid
 */
export async function createEngineRuntime(options: EngineRuntimeOptions): Promise<ContainerEngine> {
  const { clock = systemClock, logger = silentLogger, owner = 'default' } = options;
  if (!/^[\w.-]+$/.test(owner))
    throw new RuntimeError('InvalidArgument', `invalid owner "${owner}": must match ^[A-Za-z0-9_.-]+$`);
  const http = new EngineHttp(socketPathOf(options.endpoint));
  try {
    const link = new EngineLink(http);
    const engine = await link.refreshIfReachable();
    if (engine === undefined) logger.warn('the container engine does not respond yet', { endpoint: options.endpoint });
    const feed = new EventFeed(() => clock.now());
    const records = new StateRecords(options.stateDirectory ?? join(defaultStateDirectory, owner));
    let sequence = 0;
    const context: EngineContext = {
      ...{ http, link, options, owner, clock, logger, records, feed },
      logs: new LogKeeper(records, clock, logger),
      tracker: new LifeTracker(feed, () => clock.now()),
      nextSequence: () => ++sequence,
    };
    const reader = new ContainerReader(context);
    const waits = new ContainerWaits(clock);
    const containers = new EngineContainers(context, reader, waits);
    const images = new EngineImages(http, clock, options.infraImage);
    const { nodeIp = findNodeIp() } = options;
    const sandboxes = new EngineSandboxes({
      context,
      reader,
      containers,
      images,
      network: new SandboxNetwork(context, () => nodeIp),
    });
    const source = watchEngine({ context, reader, waits, sandboxes });
    const runtime = new EngineRuntime({
      ...{ context, reader, containers, images, sandboxes, source },
      capabilities: capabilitiesOf(engine),
      streams: new ContainerStreams(context, reader, waits, sandboxes),
      stats: new StatsReader(context, reader),
    });
    await source.start();
    return withDeadlines({ runtime, images }, { clock });
  } catch (error) {
    http.close();
    throw error;
  }
}

function socketPathOf(endpoint: string): string {
  const path = /^unix:\/\/(\/.+)$/.exec(endpoint)?.[1];
  if (path === undefined)
    throw new RuntimeError('InvalidArgument', `invalid endpoint "${endpoint}": must be unix:///PATH`);
  return path;
}

/** First version of Podman with a call that changes the limits of a running container. */
const podmanUpdate = '4.3';

function capabilitiesOf(engine: ConnectedEngine | undefined): RuntimeCapabilities {
  const { MemoryLimit = true, CpuCfsQuota = true, SecurityOptions } = engine?.info ?? {};
  const supports = (kind: string) =>
    engine === undefined || (SecurityOptions ?? []).some((option) => option.includes(kind));
  return {
    rootFilesystem: 'image',
    ...{ podNetwork: true, hostNetwork: true, mounts: true, readonlyMounts: true, exactMounts: false, users: true },
    ...{ memoryLimits: MemoryLimit, cpuLimits: CpuCfsQuota },
    updateResources: engine?.flavour !== 'podman' || compareVersions(engine.version, podmanUpdate) >= 0,
    ...{
      containerPid: true,
      sharedPid: true,
      privileged: true,
      capabilitySets: true,
      readonlyRootfs: true,
      noNewPrivileges: true,
    },
    ...{ seccomp: supports('seccomp'), apparmor: supports('apparmor') },
    ...{ sysctls: true, hostPorts: true, devices: true, tty: true, exec: true, attach: true },
    // Only root may enter the network namespaces of other processes.
    portForward: process.getuid?.() === 0,
    ...{ events: true, stats: true, logs: true, pullProgress: true, pull: true, survivesRestart: true },
  };
}
