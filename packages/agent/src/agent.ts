import { withDeadlines } from '@keelson/container-runtime';
import { noMetrics } from '@keelson/core';
import type { Pod } from '@keelson/kinds';
import { defaultPeriods } from './agent-periods.ts';
import { ContainerKiller } from './containers/container-killer.ts';
import { ContainerStarter } from './containers/container-starter.ts';
import { TerminationMessages } from './containers/termination-message.ts';
import type { AgentConfig } from './contracts/agent-config.ts';
import type { Agent, AgentDependencies } from './contracts/agent-dependencies.ts';
import { noEvents } from './contracts/event-recorder.ts';
import { CachedObjectReader, noObjects } from './environment/object-reader.ts';
import { podEvents } from './events/pod-events.ts';
import { Garbage } from './garbage/garbage.ts';
import { CloudCredentials } from './images/cloud-credentials.ts';
import { ImagePuller } from './images/image-puller.ts';
import { PodRange } from './network/pod-range.ts';
import { nodeIps } from './node/node-addresses.ts';
import { NodePresence } from './node/node-presence.ts';
import { nodeAllocatable, nodeCapacity } from './node/node-resources.ts';
import { RuntimeHealth } from './node/runtime-health.ts';
import { podCapacity } from './pods/admission.ts';
import { Housekeeping } from './pods/housekeeping.ts';
import { PodIntake } from './pods/pod-intake.ts';
import { PodKeeper } from './pods/pod-keeper.ts';
import { PodStateView } from './pods/pod-state-view.ts';
import { PodStates } from './pods/pod-states.ts';
import { PodSyncer } from './pods/pod-syncer.ts';
import { PodWorkers } from './pods/pod-workers.ts';
import { Relister } from './pods/relister.ts';
import { PodProbes } from './probes/pod-probes.ts';
import { createLook } from './probes/prober.ts';
import { VolumeStats } from './stats/volume-stats.ts';
import { StatusReports } from './status/status-reports.ts';
import { AgentPaths } from './volumes/agent-paths.ts';
import { createVolumes } from './volumes/create-volumes.ts';

/**
 * Makes the part of the agent that runs pods: it takes the pods of `pods`, makes the runtime have them, and tells the API server of them and of the
 * node. All it knows can be rebuilt from the runtime and the API: a new agent goes on where another ended.
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
  const { logRoot = '/var/log', version = 'v0.1.0', random = Math.random } = dependencies;
  const periods = { ...defaultPeriods, ...dependencies.periods };
  const callTimeoutMs = config.runtimeRequestTimeoutMs;
  const { runtime, images } = withDeadlines(dependencies, { clock, defaultTimeoutMs: callTimeoutMs });
  const events = podEvents(recorder);
  const paths = new AgentPaths(config.rootDir, logRoot);
  const stopped = new AbortController();
  const ips = nodeIps(config.node.ip, machine);
  const maxPods = podCapacity(config.limits, machine.cores);
  const capacity = nodeCapacity(machine, maxPods);
  const allocatable = nodeAllocatable(capacity, config.clusterReserved, config.systemReserved);
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
  const states = new PodStates({ runtime, clock, logger, callTimeoutMs, onChange: (uid) => workers.poke(uid) });
  const reports = new StatusReports({
    api,
    clock,
    logger,
    batchMs: periods.statusBatch,
    mirrorOf: (fullName) => intake.mirrorOf(fullName),
  });
  const offer = { maxPods, allowedUnsafeSysctls: config.allowedUnsafeSysctls };
  const intake = new PodIntake({ config: pods, states, reports, offer, workers: () => workers });
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
  const volumeStats = new VolumeStats({
    files: host.files,
    volumes: () => volumes.measured(),
    clock,
    logger,
    periodMs: config.volumeStatsMs,
    random,
  });
  const starter = new ContainerStarter({
    runtime,
    images,
    puller,
    events,
    clock,
    logger,
    paths,
    files: host.files,
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
    messages,
    objects: api === undefined ? noObjects : new CachedObjectReader(api, clock, Math.min(periods.objectTtl, config.syncMs)),
    events,
    node: { hostIps: () => ips, allocatable: () => allocatable, networkReady: () => health.networkReady() },
    paths,
    clock,
    callTimeoutMs,
    report: (pod: Pod, status) => reports.set(pod, status),
  });
  const work = new PodKeeper({ syncer, runtime, killer, states, probes, volumes, messages, reports, paths, callTimeoutMs });
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
      if (!begun) intake.start();
      begun = true;
    },
  });
  const housekeeping = new Housekeeping({
    workers,
    states,
    volumes,
    paths,
    clock,
    logger,
    periodMs: periods.housekeeping,
    seenAllSources: () => pods.seenAllSources(),
  });
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
    node: { apiVersion: 'v1', kind: 'Node', name: config.nodeName, uid: config.nodeName },
    callTimeoutMs,
    imagePeriodMs: periods.imageGarbage,
    containerPeriodMs: periods.containerGarbage,
  });
  const range = new PodRange({ runtime, callTimeoutMs, logger });
  if (heartbeatApi !== undefined) {
    presence = new NodePresence({
      ...{ config, machine, runtime, images, clock, logger, callTimeoutMs, ips, capacity, allocatable },
      api: heartbeatApi,
      events: recorder,
      agentVersion: version,
      problems: () => health.problems(),
      volumesInUse: () => volumeParts.inUse(),
      onNode: ({ spec }) => range.learn(spec?.podCIDR),
    });
  }
  return {
    name: 'agent',
    state: new PodStateView({
      config: pods,
      states,
      reports,
      runtime,
      clock,
      callTimeoutMs,
      volumesOf: (uid) => volumeStats.of(uid),
    }),
    async start() {
      if (api === undefined) await range.learn(config.network.podCidr);
      await cloud.check();
      await volumeParts.start();
      await health.start();
      presence?.start();
      reports.start();
      relister.start();
      housekeeping.start();
      garbage.start();
      volumeStats.start();
    },
    async stop() {
      intake.stop();
      stopped.abort();
      probes.stop();
      const loops = [garbage, volumeStats, housekeeping, relister, workers, health, presence];
      await Promise.all(loops.map(async (loop) => loop?.stop()));
      await reports.stop();
    },
  };
}
