import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import {
  type ContainerEngine,
  EventFeed,
  type RuntimeCapabilities,
  RuntimeError,
  withDeadlines,
} from '@keelson/container-runtime';
import { silentLogger, systemClock } from '@keelson/core';
import type { EngineInfo } from './api/documents.ts';
import { EngineHttp } from './api/engine-http.ts';
import { compareVersions, type Negotiated, negotiate } from './api/negotiate.ts';
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
import { StateRecords } from './state/state-records.ts';
import { StatsReader } from './stats/container-stats.ts';
import type { Surroundings } from './surroundings.ts';

const defaultStateDirectory = '/var/lib/keelson/runtime-engine';

/**
 * Speaks with the engine at the endpoint, and finds what earlier runtimes of the same owner have made there. The engine must answer now; later it
 * may go away and come back. Disposing of the runtime leaves containers running.
 * @throws `Unavailable` when nobody answers, `Unsupported` for engines that are too old, `InvalidArgument`
 */
export async function createEngineRuntime(options: EngineRuntimeOptions): Promise<ContainerEngine> {
  const { clock = systemClock, logger = silentLogger, owner = 'default' } = options;
  if (!/^[\w.-]+$/.test(owner)) throw new RuntimeError('InvalidArgument', `not a name of an owner: "${owner}"`);
  const http = new EngineHttp(socketPathOf(options.endpoint));
  try {
    const engine = await negotiate(http);
    const { body: info } = await http.json<EngineInfo>('GET', '/info');
    const feed = new EventFeed(() => clock.now());
    const records = new StateRecords(options.stateDirectory ?? join(defaultStateDirectory, owner));
    let sequence = 0;
    const around: Surroundings = {
      ...{ http, engine, options, owner, clock, logger, records, feed },
      systemdCgroups: info.CgroupDriver === 'systemd',
      logs: new LogKeeper(records, clock, logger),
      tracker: new LifeTracker(feed, () => clock.now()),
      nextSequence: () => ++sequence,
    };
    const reader = new ContainerReader(around);
    const waits = new ContainerWaits(clock);
    const containers = new EngineContainers(around, reader, waits);
    const images = new EngineImages(http, clock, options.infraImage);
    const { nodeIp = findNodeIp() } = options;
    const sandboxes = new EngineSandboxes({ around, reader, containers, images, nodeIp: () => nodeIp });
    const source = watchEngine({ around, reader, waits, sandboxes });
    const runtime = new EngineRuntime({
      ...{ around, reader, containers, images, sandboxes, source },
      capabilities: capabilitiesOf(engine, info),
      streams: new ContainerStreams(around, reader, waits, sandboxes),
      stats: new StatsReader(around, reader),
    });
    await source.start();
    const [pods, others] = await Promise.all([sandboxes.entries(), reader.entries()]);
    records.keepOnly(new Set([...pods, ...others].map(({ Id }) => Id)));
    await options.network?.sweep(new Set(pods.map(({ Id }) => Id)));
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

function findNodeIp(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1';
}

/** Podman has had a call that changes limits of a running container since this version. */
const podmanUpdate = '4.3';

function capabilitiesOf({ flavour, version }: Negotiated, info: EngineInfo): RuntimeCapabilities {
  const security = info.SecurityOptions ?? [];
  const root = process.getuid?.() === 0;
  return {
    rootFilesystem: 'image',
    ...{ podNetwork: true, hostNetwork: true, mounts: true, readonlyMounts: true, users: true },
    memoryLimits: info.MemoryLimit === true,
    cpuLimits: info.CpuCfsQuota === true,
    updateResources: flavour === 'docker' || compareVersions(version, podmanUpdate) >= 0,
    ...{
      containerPid: true,
      sharedPid: true,
      privileged: true,
      capabilitySets: true,
      readonlyRootfs: true,
      noNewPrivileges: true,
    },
    seccomp: security.some((option) => option.includes('seccomp')),
    apparmor: security.some((option) => option.includes('apparmor')),
    ...{ sysctls: true, hostPorts: true, devices: true, tty: true, exec: true, attach: true },
    // Only root enters the network namespaces of others.
    portForward: root,
    ...{ events: true, stats: true, logs: true, pullProgress: true, pull: true, survivesRestart: true },
  };
}
