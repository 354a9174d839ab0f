import { withDeadlines } from '@keelson/container-runtime';
import { noMetrics, quantityValue } from '@keelson/core';
import type { Pod } from '@keelson/kinds';
import { AgentPaths } from '../base/agent-paths.ts';
import type { AgentConfig } from '../base/config/agent-config.ts';
import { defaultPeriods } from '../base/config/agent-periods.ts';
import { noEvents } from '../base/contracts/event-recorder.ts';
import { podEvents } from '../base/events/pod-events.ts';
import { CachedObjectReader, noObjects } from '../base/pod/object-reader.ts';
import { createNodeCgroups } from '../machine/cgroups/node-cgroups.ts';
import { createCpuManager } from '../machine/cpus/cpu-manager.ts';
import { readTopology } from '../machine/cpus/cpu-topology.ts';
import { CloudCredentials } from '../machine/images/cloud-credentials.ts';
import { ImagePuller } from '../machine/images/image-puller.ts';
import { LogRotation } from '../machine/logs/log-rotation.ts';
import { PodRange } from '../machine/network/pod-range.ts';
import { machineUsage } from '../machine/stats/node-usage.ts';
import { VolumeStats } from '../machine/stats/volume-stats.ts';
import { createVolumes } from '../machine/volumes/create-volumes.ts';
import { createEviction } from '../node/eviction/create-eviction.ts';
import { pressureRefusal } from '../node/eviction/pressure-admission.ts';
import { PressureState } from '../node/eviction/pressure-state.ts';
import { Garbage } from '../node/garbage/garbage.ts';
import { nodeIps } from '../node/node-addresses.ts';
import { NodePresence } from '../node/node-presence.ts';
import { NodeResources } from '../node/node-resources.ts';
import { podCapacity } from '../pods/admission.ts';
import { ContainerKiller } from '../pods/containers/container-killer.ts';
import { ContainerStarter } from '../pods/containers/container-starter.ts';
import { TerminationMessages } from '../pods/containers/termination-message.ts';
import { Housekeeping } from '../pods/housekeeping.ts';
import { PodIntake } from '../pods/pod-intake.ts';
import { PodKeeper } from '../pods/pod-keeper.ts';
import { PodQueryReader } from '../pods/pod-query-reader.ts';
import { PodStreamView } from '../pods/pod-stream-view.ts';
import { PodSyncer } from '../pods/pod-syncer.ts';
import { PodWorkers } from '../pods/pod-workers.ts';
import { PodProbes } from '../pods/probes/pod-probes.ts';
import { createLook } from '../pods/probes/prober.ts';
import { StatusReports } from '../pods/status/status-reports.ts';
import { Relister } from '../runtime-view/relister.ts';
import { RuntimeHealth } from '../runtime-view/runtime-health.ts';
import { RuntimePods } from '../runtime-view/runtime-pods.ts';
import { RuntimeVersionCache } from '../runtime-view/runtime-version-cache.ts';
import type { Agent, AgentDependencies } from './agent-dependencies.ts';

/**
 * Makes the part of the agent that runs pods: it takes the pods of `pods`, makes the runtime have them, and tells the
 * API server of them and of the node. All it knows can be rebuilt from the runtime and the API: a new agent goes on
 * where another ended.
 * @throws NodeAddressError when the node cannot have the address it was told
 */
export function createAgent(config: AgentConfig, dependencies: AgentDependencies): Agent {
  const {
    api,
    heartbeatApi = api,
    pods,
    machine,
    clock,
    logger,
    events: recorder = noEvents,
    metrics = noMetrics,
  } = dependencies;
  const { logRoot = '/var/log', version: agentVersion = 'v0.1.0', random = Math.random } = dependencies;
  const periods = { ...defaultPeriods, ...dependencies.periods };
  const callTimeoutMs = config.runtimeRequestTimeoutMs;
  const { runtime, images } = withDeadlines(dependencies, { clock, defaultTimeoutMs: callTimeoutMs });
  const events = podEvents(recorder);
  const paths = new AgentPaths(config.rootDir, logRoot);
  const stopped = new AbortController();
  const ips = nodeIps(config.node.ip, machine);
  const maxPods = podCapacity(config.limits, machine.cores);
  const cgroups = createNodeCgroups({
    ...{ config, machine, paths, clock, logger },
    access: dependencies.cgroups,
    periodMs: periods.cgroups,
    events: recorder,
  });
  const version = new RuntimeVersionCache(runtime, clock, callTimeoutMs);
  const podCount = metrics.gauge({ name: 'keelson_agent_pods', help: 'Pods that the agent looks after.' });

  let presence: NodePresence | undefined;
  const health = new RuntimeHealth({
    runtime,
    clock,
    logger,
    callTimeoutMs,
    periodMs: periods.runtimeStatus,
    downAfterMs: periods.runtimeDown,
    onChange: () => {
      presence?.poke();
      workers.pokeAll();
    },
  });
  const states = new RuntimePods({ runtime, clock, logger, callTimeoutMs, onChange: (uid) => workers.poke(uid) });
  const reports = new StatusReports({
    api,
    clock,
    logger,
    batchMs: periods.statusBatch,
    mirrorOf: (fullName) => intake.mirrorOf(fullName),
  });
  const pressure = new PressureState(config.eviction.thresholds, config.eviction.transitionMs);
  const offer = { maxPods, allowedUnsafeSysctls: config.allowedUnsafeSysctls, runtime };
  const intake = new PodIntake({
    config: pods,
    states,
    reports,
    events,
    offer,
    shortFor: (pod) => {
      const refused = pressureRefusal(pod, pressure.conditions, config.gates);
      if (refused !== undefined) events.record(pod, 'Warning', refused.reason, refused.message);
      return refused;
    },
    workers: () => workers,
  });
  const look = createLook(runtime, clock, stopped.signal);
  const probes = new PodProbes({ look, clock, events, random, onChange: (uid) => workers.poke(uid) });
  const killer = new ContainerKiller({ runtime, clock, logger, events, callTimeoutMs });
  const cloud = new CloudCredentials(config.images, logger);
  const puller = new ImagePuller({
    images,
    cloud,
    config: config.images,
    pullProgress: runtime.capabilities.pullProgress,
    clock,
    events,
    callTimeoutMs,
  });
  const volumeParts = createVolumes({ config, paths, dependencies, onInUse: () => presence?.poke() });
  const { volumes, host } = volumeParts;
  const usage = dependencies.nodeUsage ?? machineUsage(host.files);
  const diskBytes = async () => (await usage.disk(config.rootDir)).capacityBytes;
  const resources = new NodeResources({ config, machine, maxPods, diskBytes });
  const volumeStats = new VolumeStats({
    files: host.files,
    volumes: () => volumes.measured(),
    clock,
    logger,
    periodMs: config.volumeStatsMs,
    random,
  });
  const cpus = createCpuManager({
    ...{ config, runtime, states, clock, logger, callTimeoutMs },
    topology: async () => dependencies.topology ?? readTopology('/sys/devices/system/cpu'),
    isWanted: (uid) =>
      !pods.seenAllSources() || !states.complete || workers.get(uid) !== undefined || states.get(uid) !== undefined,
  });
  const starter = new ContainerStarter({
    runtime,
    images,
    puller,
    cpus,
    events,
    clock,
    logger,
    paths,
    subPaths: volumeParts.subPaths,
    callTimeoutMs,
    security: { isolatePids: config.isolatePids, seccompRoot: config.seccompRoot },
    resources: { cpuCfsQuota: config.cpuCfsQuota, machineMemoryBytes: machine.memoryBytes },
    mountPropagation: config.gates['MountPropagation'] === true,
  });
  const messages = new TerminationMessages();
  const syncer = new PodSyncer({
    config,
    runtime,
    states,
    starter,
    killer,
    volumes,
    probes,
    cgroups: cgroups.pods,
    messages,
    objects:
      api === undefined ? noObjects : new CachedObjectReader(api, clock, Math.min(periods.objectTtl, config.syncMs)),
    events,
    node: { hostIps: () => ips, allocatable: () => resources.allocatable, networkReady: () => health.networkReady() },
    paths,
    clock,
    callTimeoutMs,
    report: (pod: Pod, status) => reports.set(pod, status),
    runtimeName: () => version.last?.runtimeName ?? runtime.name,
  });
  const work = new PodKeeper({
    ...{ syncer, runtime, killer, states, probes, volumes, messages, reports, paths, callTimeoutMs },
    cgroups: cgroups.pods,
    cpus,
  });
  const workers = new PodWorkers({
    work,
    clock,
    logger,
    random,
    syncMs: config.syncMs,
    remember: (pod) => {
      podCount.add(1);
      return intake.remember(pod);
    },
    onGone: (uid) => {
      podCount.set(workers.size);
      reports.forget(uid);
      starter.forget(uid);
      puller.forget(uid);
    },
  });
  let begun = false;
  const relister = new Relister({
    runtime,
    states,
    clock,
    logger,
    periodMs: periods.relist,
    quietPeriodMs: periods.relistWithEvents,
    onRelisted: () => {
      // What runs already is known before the first pod is taken: it is adopted, not begun anew.
      if (begun) return;
      begun = true;
      // IDs of containers in the status begin with the name of the runtime.
      void version.get().then(() => stopped.signal.aborted || intake.start());
    },
  });
  const housekeeping = new Housekeeping({
    workers,
    states,
    volumes,
    cgroups: cgroups.pods,
    paths,
    clock,
    logger,
    periodMs: periods.housekeeping,
    seenAllSources: () => pods.seenAllSources(),
  });
  const node = { apiVersion: 'v1', kind: 'Node', name: config.nodeName, uid: config.nodeName };
  const garbage = new Garbage({
    runtime,
    images,
    config: config.images,
    workers,
    states,
    messages,
    paths,
    clock,
    logger,
    events: recorder,
    node,
    callTimeoutMs,
    imagePeriodMs: periods.imageGarbage,
    containerPeriodMs: periods.containerGarbage,
  });
  const logRotation = new LogRotation({ runtime, states, clock, logger, callTimeoutMs, periodMs: periods.logRotation });
  const state = new PodQueryReader({
    config: pods,
    states,
    reports,
    runtime,
    clock,
    callTimeoutMs,
    volumesOf: (uid) => volumeStats.of(uid),
  });
  const eviction = createEviction({
    config,
    dependencies: { ...dependencies, images },
    periods,
    usage,
    pressure,
    state,
    workers,
    garbage,
    paths,
    files: host.files,
    podEvents: events,
    node,
    allocatableMemory: () => Number(quantityValue(resources.allocatable['memory'] ?? '0')),
    onChange: () => presence?.poke(),
  });
  const range = new PodRange({ runtime, callTimeoutMs, logger });
  if (heartbeatApi !== undefined) {
    presence = new NodePresence({
      ...{ config, machine, runtime, images, clock, logger, callTimeoutMs, ips, resources },
      api: heartbeatApi,
      events: recorder,
      agentVersion,
      version,
      port: () => (config.server.enabled ? (dependencies.port?.() ?? config.server.port) : 0),
      problems: () => health.problems(),
      pressure: () => pressure.conditions,
      further: dependencies.nodeConditions ?? (() => []),
      volumesInUse: () => volumeParts.inUse(),
      onNode: ({ spec }) => range.learn(spec?.podCIDR),
    });
  }
  return {
    name: 'agent',
    state,
    streams: new PodStreamView({ config: pods, states, runtime }),
    async start() {
      if (api === undefined) await range.learn(config.network.podCidr);
      await cloud.check();
      await cpus.start();
      await cgroups.start();
      await volumeParts.start();
      await health.start();
      // The disk that it is on is looked at before the first pod makes it. Where that is impossible pods say so.
      await host.files.makeDirectory(config.rootDir, 0o750).catch(() => false);
      await resources.start();
      await eviction.start();
      presence?.start();
      reports.start();
      relister.start();
      housekeeping.start();
      garbage.start();
      logRotation.start();
      volumeStats.start();
    },
    async stop() {
      intake.stop();
      stopped.abort();
      probes.stop();
      const loops = [
        eviction,
        cpus,
        cgroups,
        garbage,
        logRotation,
        volumeStats,
        housekeeping,
        relister,
        workers,
        health,
        presence,
      ];
      await Promise.all(loops.map(async (loop) => loop?.stop()));
      await reports.stop();
    },
  };
}
