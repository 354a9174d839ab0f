import { join } from 'node:path';
import {
  type ContainerEngine,
  EventFeed,
  findNodeIp,
  type RuntimeCapabilities,
  RuntimeError,
  withDeadlines,
} from '@keelson/container-runtime';
import { silentLogger, systemClock } from '@keelson/core';
import { EngineHttp } from './api/engine-http.ts';
import { EngineLink, type KnownEngine } from './api/engine-link.ts';
import { compareVersions } from './api/negotiate.ts';
import { ContainerReader } from './containers/container-reader.ts';
import { ContainerStreams } from './containers/container-streams.ts';
import { ContainerWaits } from './containers/container-waits.ts';
import { EngineContainers } from './containers/engine-containers.ts';
import { EngineRuntime } from './engine-runtime.ts';
import { watchEngine } from './events/engine-watch.ts';
import { LifeTracker } from './events/life-tracker.ts';
import { EngineImages } from './images/engine-images.ts';
import { LogKeeper } from './logs/log-keeper.ts';
import type { EngineRuntimeOptions } from './options.ts';
import { EngineSandboxes } from './sandboxes/engine-sandboxes.ts';
import { SandboxNetwork } from './sandboxes/sandbox-network.ts';
import { StateRecords } from './state/state-records.ts';
import { StatsReader } from './stats/container-stats.ts';
import type { Surroundings } from './surroundings.ts';

const defaultStateDirectory = '/var/lib/keelson/runtime-engine';

/**
 * Speaks with the engine at the endpoint, and finds what earlier runtimes of the same owner have made there. The engine
 * may come up later, go away and come back: calls are `Unavailable` meanwhile. One that is not there yet is taken to be
 * able to do everything. Disposing of the runtime leaves containers running.
 * @throws `Unsupported` for engines that are too old and for what is no engine, `InvalidArgument`
 */
export async function createEngineRuntime(options: EngineRuntimeOptions): Promise<ContainerEngine> {
  const { clock = systemClock, logger = silentLogger, owner = 'default' } = options;
  if (!/^[\w.-]+$/.test(owner)) throw new RuntimeError('InvalidArgument', `not a name of an owner: "${owner}"`);
  const http = new EngineHttp(socketPathOf(options.endpoint));
  try {
    const link = new EngineLink(http);
    const engine = await link.askIfThere();
    if (engine === undefined) logger.warn('no container engine answers yet', { endpoint: options.endpoint });
    const feed = new EventFeed(() => clock.now());
    const records = new StateRecords(options.stateDirectory ?? join(defaultStateDirectory, owner));
    let sequence = 0;
    const around: Surroundings = {
      ...{ http, link, options, owner, clock, logger, records, feed },
      logs: new LogKeeper(records, clock, logger),
      tracker: new LifeTracker(feed, () => clock.now()),
      nextSequence: () => ++sequence,
    };
    const reader = new ContainerReader(around);
    const waits = new ContainerWaits(clock);
    const containers = new EngineContainers(around, reader, waits);
    const images = new EngineImages(http, clock, options.infraImage);
    const { nodeIp = findNodeIp() } = options;
    const sandboxes = new EngineSandboxes({
      around,
      reader,
      containers,
      images,
      network: new SandboxNetwork(around, () => nodeIp),
    });
    const source = watchEngine({ around, reader, waits, sandboxes });
    const runtime = new EngineRuntime({
      ...{ around, reader, containers, images, sandboxes, source },
      capabilities: capabilitiesOf(engine),
      streams: new ContainerStreams(around, reader, waits, sandboxes),
      stats: new StatsReader(around, reader),
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
  if (path === undefined) throw new RuntimeError('InvalidArgument', `not the URL of a unix socket: "${endpoint}"`);
  return path;
}

/** Podman has had a call that changes limits of a running container since this version. */
const podmanUpdate = '4.3';

function capabilitiesOf(engine: KnownEngine | undefined): RuntimeCapabilities {
  const { MemoryLimit = true, CpuCfsQuota = true, SecurityOptions } = engine?.info ?? {};
  const secures = (kind: string) =>
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
    ...{ seccomp: secures('seccomp'), apparmor: secures('apparmor') },
    ...{ sysctls: true, hostPorts: true, devices: true, tty: true, exec: true, attach: true },
    // Only root enters the network namespaces of others.
    portForward: process.getuid?.() === 0,
    ...{ events: true, stats: true, logs: true, pullProgress: true, pull: true, survivesRestart: true },
  };
}
