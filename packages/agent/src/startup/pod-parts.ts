import { CachedObjectReader, noObjects } from '../base/pod/object-reader.ts';
import { LogRotation } from '../machine/logs/log-rotation.ts';
import { pressureRejection } from '../node/eviction/pressure-admission.ts';
import type { PressureState } from '../node/eviction/pressure-state.ts';
import type { NodeResources } from '../node/node-resources.ts';
import { ContainerKiller } from '../pods/containers/container-killer.ts';
import { ContainerStarter } from '../pods/containers/container-starter.ts';
import { TerminationMessages } from '../pods/containers/termination-message.ts';
import { Housekeeping } from '../pods/housekeeping.ts';
import { MirrorIndex } from '../pods/mirror-index.ts';
import { PodAdmission } from '../pods/pod-admission.ts';
import { PodIntake } from '../pods/pod-intake.ts';
import { PodKeeper } from '../pods/pod-keeper.ts';
import { PodQueryReader } from '../pods/pod-query-reader.ts';
import { PodStreamView } from '../pods/pod-stream-view.ts';
import { PodSyncer } from '../pods/pod-syncer.ts';
import { PodWorkers } from '../pods/pod-workers.ts';
import { PodProbes } from '../pods/probes/pod-probes.ts';
import { createProber } from '../pods/probes/prober.ts';
import { StatusReports } from '../pods/status/status-reports.ts';
import { Relister } from '../runtime-view/relister.ts';
import type { AgentContext } from './agent-context.ts';
import type { MachineParts } from './machine-parts.ts';
import type { RuntimeParts } from './runtime-parts.ts';

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
  const syncer = new PodSyncer({
    ...{ config, runtime, states, starter, killer, volumes, probes, messages, events, paths, clock, callTimeoutMs },
    cgroups: machine.cgroups.pods,
    objects:
      api === undefined ? noObjects : new CachedObjectReader(api, clock, Math.min(periods.objectTtl, config.syncMs)),
    node: {
      hostIps: () => node.ips,
      allocatable: () => node.resources.allocatable,
      networkReady: () => health.networkReady(),
    },
    report: (pod, status) => reports.set(pod, status),
    runtimeName: () => version.last?.runtimeName ?? runtime.name,
  });
  const admission = createAdmission(context, states, mirrors, node.pressure);
  const podCount = context.metrics.gauge({ name: 'keelson_agent_pods', help: 'Pods that the agent manages.' });
  const workers = new PodWorkers({
    ...{ clock, logger, random, syncMs: config.syncMs },
    work: new PodKeeper({
      ...{ syncer, runtime, killer, states, probes, volumes, messages, reports, paths, callTimeoutMs },
      cgroups: machine.cgroups.pods,
      cpus: machine.cpus,
    }),
    recordOf: (pod, accepted) => admission.recordOf(pod, accepted),
    onCount: (count) => podCount.set(count),
    onGone: (uid) => {
      reports.forget(uid);
      starter.forget(uid);
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
