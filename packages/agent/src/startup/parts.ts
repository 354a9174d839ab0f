// One file: the parts of the agent are created in the order of their dependencies.
import { type ContainerRuntime, type ImageService, withDeadlines } from '@keelson/container-runtime';
import { type ApiClient, quantityValue } from '@keelson/core';
import { type Clock, type Logger, type Metrics, noMetrics } from '@keelson/core/runtime';
import { AgentPaths } from '../base/agent-paths.ts';
import type { AgentConfig } from '../base/config/agent-config.ts';
import { type AgentPeriods, defaultPeriods } from '../base/config/agent-periods.ts';
import type { PodConfigReader } from '../base/contracts/pod-source.ts';
import {
  type EventRecorder,
  type EventSubject,
  noEvents,
  type PodEvents,
  podEvents,
} from '../base/events/event-recorder.ts';
import { CachedObjectReader, noObjects } from '../base/pod/object-reader.ts';
import { PodTokens } from '../base/pod/pod-tokens.ts';
import { createNodeCgroups, type NodeCgroups } from '../machine/cgroups/node-cgroups.ts';
import { type CpuManager, createCpuManager } from '../machine/cpus/cpu-manager.ts';
import { readTopology } from '../machine/cpus/cpu-topology.ts';
import { ImagePuller } from '../machine/images/image-puller.ts';
import { CloudCredentials } from '../machine/images/pull-credentials.ts';
import { LogRotation } from '../machine/logs/log-rotation.ts';
import { PodRange } from '../machine/network/pod-network.ts';
import { machineUsage, type NodeUsage } from '../machine/stats/node-usage.ts';
import { VolumeStats } from '../machine/stats/volume-stats.ts';
import { createVolumes, type Volumes } from '../machine/volumes/create-volumes.ts';
import { createEviction, type Eviction } from '../node/eviction/create-eviction.ts';
import { type PressureState, pressureRejection } from '../node/eviction/pressure.ts';
import { Garbage } from '../node/garbage/garbage.ts';
import { NodePresence } from '../node/node-presence.ts';
import type { NodeResources } from '../node/node-resources.ts';
import { TerminationMessages } from '../pods/containers/container-files.ts';
import { ContainerKiller } from '../pods/containers/container-killer.ts';
import { ContainerStarter } from '../pods/containers/container-starter.ts';
import { Housekeeping } from '../pods/housekeeping.ts';
import { PodAdmission, podCapacity } from '../pods/pod-admission.ts';
import { MirrorIndex, PodIntake } from '../pods/pod-intake.ts';
import { PodQueryReader } from '../pods/pod-query-reader.ts';
import { PodStreamView } from '../pods/pod-stream-view.ts';
import { PodSyncer } from '../pods/pod-syncer.ts';
import { PodWorkers } from '../pods/pod-workers.ts';
import { PodProbes } from '../pods/probes/pod-probes.ts';
import { createProber } from '../pods/probes/prober.ts';
import { StatusReports } from '../pods/status/status-reports.ts';
import { Relister } from '../runtime-view/relister.ts';
import { RuntimeHealth, RuntimeVersionCache } from '../runtime-view/runtime-health.ts';
import { RuntimePods } from '../runtime-view/runtime-pods.ts';
import type { AgentDependencies } from './agent-dependencies.ts';

/** Passes notifications of a change from the parts that observe it to the parts that act on it. */
export class ChangeNotifier<Arguments extends readonly unknown[] = []> {
  readonly #listeners: ((...change: Arguments) => void)[] = [];

  /** Adds a listener. Notifications before this call are not repeated. */
  subscribe(listener: (...change: Arguments) => void): void {
    this.#listeners.push(listener);
  }

  /** Calls all listeners synchronously, in the order in which they were added. */
  notify(...change: Arguments): void {
    for (const listener of this.#listeners) listener(...change);
  }
}

/** Changes that one part of the agent observes and another part acts on. */
export interface AgentChanges {
  /** Notifies that a pod, identified by its UID, must be reconciled. */
  readonly pod: ChangeNotifier<[uid: string]>;
  /** Notifies that the runtime became ready or stopped being ready. */
  readonly runtime: ChangeNotifier;
  /** Notifies that the status of the node must be reported. */
  readonly node: ChangeNotifier;
}

/** The context that all parts of the agent are constructed with: the configuration, the dependencies, and defaults. */
export interface AgentContext {
  readonly config: AgentConfig;
  readonly dependencies: AgentDependencies;
  readonly api: ApiClient | undefined;
  /** The runtime and the image service; every call has the deadline of the configuration. */
  readonly runtime: ContainerRuntime;
  readonly images: ImageService;
  /** The desired pods of all sources. */
  readonly pods: PodConfigReader;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly recorder: EventRecorder;
  readonly events: PodEvents;
  readonly paths: AgentPaths;
  readonly periods: AgentPeriods;
  readonly random: () => number;
  readonly callTimeoutMs: number;
  readonly maxPods: number;
  /** The node, as the subject of events. */
  readonly node: EventSubject;
  readonly changes: AgentChanges;
  /** Aborted when the agent stops. */
  readonly stopped: AbortController;
}

export function createContext(config: AgentConfig, dependencies: AgentDependencies): AgentContext {
  const { api, pods, machine, clock, logger, events: recorder = noEvents, metrics = noMetrics } = dependencies;
  const callTimeoutMs = config.runtimeRequestTimeoutMs;
  return {
    ...{ config, dependencies, api, pods, clock, logger, recorder, metrics, callTimeoutMs },
    ...withDeadlines(dependencies, { clock, defaultTimeoutMs: callTimeoutMs }),
    events: podEvents(recorder),
    paths: new AgentPaths(config.rootDir, dependencies.logRoot ?? '/var/log'),
    periods: { ...defaultPeriods, ...dependencies.periods },
    random: dependencies.random ?? Math.random,
    maxPods: podCapacity(config.limits, machine.cores),
    node: { apiVersion: 'v1', kind: 'Node', name: config.nodeName, uid: config.nodeName },
    changes: { pod: new ChangeNotifier(), runtime: new ChangeNotifier(), node: new ChangeNotifier() },
    stopped: new AbortController(),
  };
}

/** The parts that observe the container runtime. */
export interface RuntimeParts {
  readonly version: RuntimeVersionCache;
  readonly health: RuntimeHealth;
  /** The pods that the runtime reports. */
  readonly states: RuntimePods;
}

export function createRuntimeParts({
  runtime,
  clock,
  logger,
  callTimeoutMs,
  periods,
  changes,
}: AgentContext): RuntimeParts {
  const version = new RuntimeVersionCache(runtime, clock, callTimeoutMs);
  const health = new RuntimeHealth({
    ...{ runtime, clock, logger, callTimeoutMs },
    periodMs: periods.runtimeStatus,
    downAfterMs: periods.runtimeDown,
    onChange: () => changes.runtime.notify(),
  });
  const states = new RuntimePods({
    ...{ runtime, clock, logger, callTimeoutMs },
    onChange: (uid) => changes.pod.notify(uid),
  });
  return { version, health, states };
}

/** The parts that read or change the machine. */
export interface MachineParts {
  readonly cgroups: NodeCgroups;
  readonly cpus: CpuManager;
  readonly volumes: Volumes;
  readonly volumeStats: VolumeStats;
  readonly usage: NodeUsage;
  readonly credentials: CloudCredentials;
  readonly puller: ImagePuller;
  readonly podRange: PodRange;
}

/** @throws MachineError when the reservations leave nothing for pods */
export function createMachineParts(context: AgentContext, { states }: RuntimeParts): MachineParts {
  const { config, dependencies, runtime, images, clock, logger, paths, periods, callTimeoutMs } = context;
  const cgroups = createNodeCgroups({
    ...{ config, machine: dependencies.machine, paths, clock, logger },
    access: dependencies.cgroups,
    periodMs: periods.cgroups,
    events: context.recorder,
  });
  const cpus = createCpuManager({
    ...{ config, runtime, states, clock, logger, callTimeoutMs },
    topology: async () => dependencies.topology ?? readTopology('/sys/devices/system/cpu'),
  });
  const volumes = createVolumes({ config, paths, dependencies, onInUse: () => context.changes.node.notify() });
  const { files } = volumes.host;
  const volumeStats = new VolumeStats({
    ...{ files, clock, logger, random: context.random },
    volumes: () => volumes.volumes.measured(),
    periodMs: config.volumeStatsMs,
  });
  const usage = dependencies.nodeUsage ?? machineUsage(files);
  const credentials = new CloudCredentials(config.images, logger);
  const puller = new ImagePuller({
    ...{ images, cloud: credentials, clock, events: context.events, callTimeoutMs },
    config: config.images,
    pullProgress: runtime.capabilities.pullProgress,
  });
  const podRange = new PodRange({ runtime, callTimeoutMs, logger });
  return { cgroups, cpus, volumes, volumeStats, usage, credentials, puller, podRange };
}

/** The properties of the node that pods depend on. */
export interface PodNode {
  readonly ips: readonly string[];
  readonly resources: NodeResources;
  readonly pressure: PressureState;
}

/** The parts that manage the life cycle of pods. */
export interface PodParts {
  readonly reports: StatusReports;
  readonly probes: PodProbes;
  readonly messages: TerminationMessages;
  readonly workers: PodWorkers;
  readonly intake: PodIntake;
  readonly relister: Relister;
  readonly housekeeping: Housekeeping;
  readonly logRotation: LogRotation;
  readonly queries: PodQueryReader;
  readonly streams: PodStreamView;
}

export function createPodParts(
  context: AgentContext,
  { states, health, version }: RuntimeParts,
  machine: MachineParts,
  node: PodNode,
): PodParts {
  const { config, api, runtime, clock, logger, events, paths, periods, random, callTimeoutMs } = context;
  const { volumes } = machine.volumes;
  const mirrors = new MirrorIndex();
  const reports = new StatusReports({
    ...{ api, clock, logger },
    batchMs: periods.statusBatch,
    mirrorOf: (fullName) => mirrors.get(fullName),
  });
  const probes = new PodProbes({
    ...{ clock, events, random },
    run: createProber(runtime, clock, context.stopped.signal),
    onChange: (uid) => context.changes.pod.notify(uid),
  });
  const messages = new TerminationMessages();
  const killer = new ContainerKiller({ runtime, clock, logger, events, callTimeoutMs });
  const starter = createStarter(context, machine);
  const tokens = api && new PodTokens({ api, clock, logger });
  const syncer = new PodSyncer({
    ...{ config, runtime, states, starter, killer, volumes, probes, messages, events, paths, clock, callTimeoutMs },
    reports,
    cgroups: machine.cgroups.pods,
    cpus: machine.cpus,
    objects:
      api === undefined ? noObjects : new CachedObjectReader(api, clock, Math.min(periods.objectTtl, config.syncMs)),
    ...(tokens ? { tokens } : {}),
    node: {
      hostIps: () => node.ips,
      allocatable: () => node.resources.allocatable,
      networkReady: () => health.networkReady(),
    },
    runtimeName: () => version.last?.runtimeName ?? runtime.name,
  });
  const admission = createAdmission(context, states, mirrors, node.pressure);
  const podCount = context.metrics.gauge({ name: 'keelson_agent_pods', help: 'Pods that the agent manages.' });
  const workers = new PodWorkers({
    ...{ clock, logger, random, syncMs: config.syncMs },
    work: syncer,
    recordOf: (pod, accepted) => admission.recordOf(pod, accepted),
    onCount: (count) => podCount.set(count),
    onGone: (uid) => {
      reports.forget(uid);
      starter.forget(uid);
      tokens?.forget(uid);
      machine.puller.forget(uid);
    },
  });
  context.changes.pod.subscribe((uid) => workers.requestSync(uid));
  context.changes.runtime.subscribe(() => workers.pokeAll());
  const intake = new PodIntake({ config: context.pods, workers, mirrors, reports });
  const relister = new Relister({
    ...{ runtime, states, clock, logger },
    periodMs: periods.relist,
    quietPeriodMs: periods.relistWithEvents,
    // Pods are accepted after the first relist, so that what runs already is adopted instead of started again, and
    // after the runtime has returned its name, with which the container IDs in the status begin.
    onRelisted: once(() => {
      void version.get().then(() => context.stopped.signal.aborted || intake.start());
    }),
  });
  const housekeeping = new Housekeeping({
    ...{ workers, states, volumes, cgroups: machine.cgroups.pods, paths, clock, logger },
    periodMs: periods.housekeeping,
    seenAllSources: () => context.pods.seenAllSources(),
  });
  const logRotation = new LogRotation({ runtime, states, clock, logger, callTimeoutMs, periodMs: periods.logRotation });
  const queries = new PodQueryReader({
    ...{ config: context.pods, states, reports, runtime, clock, callTimeoutMs },
    volumesOf: (uid) => machine.volumeStats.of(uid),
  });
  const streams = new PodStreamView({ config: context.pods, states, runtime });
  return { reports, probes, messages, workers, intake, relister, housekeeping, logRotation, queries, streams };
}

function createStarter(context: AgentContext, { puller, cpus, volumes }: MachineParts): ContainerStarter {
  const { config, dependencies, runtime, images, events, clock, logger, paths, callTimeoutMs } = context;
  return new ContainerStarter({
    ...{ runtime, images, puller, cpus, events, clock, logger, paths, callTimeoutMs },
    subPaths: volumes.subPaths,
    security: { isolatePids: config.isolatePids, seccompRoot: config.seccompRoot },
    resources: { cpuCfsQuota: config.cpuCfsQuota, machineMemoryBytes: dependencies.machine.memoryBytes },
    mountPropagation: config.gates['MountPropagation'] === true,
  });
}

function createAdmission(
  { config, runtime, events, maxPods }: AgentContext,
  states: RuntimeParts['states'],
  mirrors: MirrorIndex,
  pressure: PressureState,
): PodAdmission {
  return new PodAdmission({
    ...{ states, mirrors, events },
    offer: { maxPods, allowedUnsafeSysctls: config.allowedUnsafeSysctls, runtime },
    shortFor(pod) {
      const rejection = pressureRejection(pod, pressure.conditions, config.gates);
      if (rejection !== undefined) events.record(pod, 'Warning', rejection.reason, rejection.message);
      return rejection;
    },
  });
}

/** Returns a function that calls `action` on its first call only. */
function once(action: () => void): () => void {
  let called = false;
  return () => {
    if (called) return;
    called = true;
    action();
  };
}

/** The parts that manage the node as a whole. */
export interface NodeParts {
  readonly garbage: Garbage;
  readonly eviction: Eviction;
  /** Undefined without an API server. */
  readonly presence: NodePresence | undefined;
}

export function createNodeParts(
  context: AgentContext,
  runtimeParts: RuntimeParts,
  machine: MachineParts,
  { workers, messages, queries }: PodParts,
  { ips, resources, pressure }: PodNode,
): NodeParts {
  const { config, dependencies, runtime, images, clock, logger, metrics, recorder, paths, periods, node } = context;
  const { callTimeoutMs } = context;
  const { states, health, version } = runtimeParts;
  const garbage = new Garbage({
    ...{ runtime, images, workers, states, messages, paths, clock, logger, node, callTimeoutMs },
    config: config.images,
    events: recorder,
    imagePeriodMs: periods.imageGarbage,
    containerPeriodMs: periods.containerGarbage,
  });
  const eviction = createEviction({
    ...{ config, periods, pressure, workers, garbage, paths, node },
    dependencies: { images, machine: dependencies.machine, clock, logger, metrics, events: recorder },
    usage: machine.usage,
    state: queries,
    files: machine.volumes.host.files,
    podEvents: context.events,
    allocatableMemory: () => Number(quantityValue(resources.allocatable['memory'] ?? '0')),
    onChange: () => context.changes.node.notify(),
  });
  const { api, heartbeatApi = api } = dependencies;
  if (heartbeatApi === undefined) return { garbage, eviction, presence: undefined };
  const presence = new NodePresence({
    ...{ config, runtime, images, clock, logger, callTimeoutMs, ips, resources, version },
    machine: dependencies.machine,
    api: heartbeatApi,
    events: recorder,
    agentVersion: dependencies.version ?? 'v0.1.0',
    port: () => (config.server.enabled ? (dependencies.port?.() ?? config.server.port) : 0),
    problems: () => health.problems(),
    pressure: () => pressure.conditions,
    further: dependencies.nodeConditions ?? (() => []),
    volumesInUse: () => machine.volumes.inUse(),
    onNode: ({ spec }) => machine.podRange.learn(spec?.podCIDR),
  });
  context.changes.node.subscribe(() => presence.requestReport());
  context.changes.runtime.subscribe(() => presence.requestReport());
  return { garbage, eviction, presence };
}
