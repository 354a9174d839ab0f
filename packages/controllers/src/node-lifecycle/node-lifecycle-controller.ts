import {
  type ControllerDefinition,
  type ObjectReader,
  type ReconcileResult,
  type ReconcileRun,
  relatedKind,
} from '@keelson/controller-kit';
import { formatTime, isStatusError, StatusReason } from '@keelson/core';
import { type coreV1, Lease, Node, Pod } from '@keelson/kinds';
import { isReady, podsByNode } from '../workload/pod-state.ts';
import { isGone } from '../workload/pod-writes.ts';
import { evictionTaint, nodeTaints, readyStatus, schedulingTaints, withTaints, writeTaints } from './taints.ts';
import { Zones, zoneOf } from './zones.ts';

/** A node without a heartbeat for this time is unreachable. */
const gracePeriodMs = 50_000;
/** A node that has never reported its state is unreachable after this time without a heartbeat. */
const startupGracePeriodMs = 60_000;
/** Period in which nodes that are not ready are examined again. */
const monitorPeriodMs = 5_000;
const leaseNamespace = 'kube-node-lease';
const heartbeatTypes = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'] as const;

/** Observations of a node by this process. Times are those of the local clock, because the clocks of nodes differ. */
interface Observation {
  readonly uid: string;
  heartbeat: string;
  /** Monotonic time of the last change of the heartbeat. */
  seenAt: number;
  ready: string | undefined;
  /** Monotonic time since which the node has not been ready. */
  lostAt: number | undefined;
}

interface State {
  readonly nodes: Map<string, Observation>;
  readonly zones: Zones;
}

/** The state of each running controller, by its node reader. */
const states = new WeakMap<ObjectReader<Node>, State>();

function stateOf(run: ReconcileRun): State {
  const nodes = run.read(Node);
  let state = states.get(nodes);
  if (state === undefined) {
    state = { nodes: new Map(), zones: new Zones() };
    states.set(nodes, state);
  }
  return state;
}

/**
 * Reports nodes whose agent has stopped as unreachable, and taints nodes according to their conditions. Times, taints,
 * reasons and limits are those of the controller of the same name in kube-controller-manager.
 */
export const nodeLifecycleController: ControllerDefinition<Node> = {
  name: 'node-lifecycle-controller',
  eventSource: 'node-controller',
  kind: Node,
  related: [
    relatedKind(Lease, ({ metadata }) => (metadata?.namespace === leaseNamespace ? [metadata.name ?? ''] : [])),
    relatedKind(Pod),
  ],
  workers: 4,
  reconcile,
  deleted: async (run) => {
    const { nodes } = stateOf(run);
    const { uid } = nodes.get(run.key) ?? {};
    if (uid !== undefined)
      report(run, { metadata: { name: run.key, uid } }, 'RemovingNode', `Removing Node ${run.key} from Controller`);
    nodes.delete(run.key);
    return undefined;
  },
};

async function reconcile(node: Node, run: ReconcileRun): Promise<ReconcileResult> {
  try {
    const state = stateOf(run);
    const observed = observe(node, run, state);
    const known = readyStatus(node) !== undefined;
    const silentMs = run.clock.monotonic() - observed.seenAt;
    const remainingMs = (known ? gracePeriodMs : startupGracePeriodMs) - silentMs;
    // The update of the status triggers the next run.
    if (remainingMs <= 0 && (await reportUnknown(node, run))) return undefined;
    await reportPods(node, observed, run);
    await taint(node, observed, state, run);
    return { againAfterMs: remainingMs > 0 && readyStatus(node) === 'True' ? remainingMs : monitorPeriodMs };
  } catch (error) {
    // Another client, usually the node agent, has updated the node in the meantime.
    if (isStatusError(error, StatusReason.Conflict)) return { againAfterMs: 0 };
    throw error;
  }
}

function report(run: ReconcileRun, node: Node, reason: string, what: string): void {
  run.event(node, 'Normal', reason, `Node ${node.metadata?.name} event: ${what}`);
}

/** Records the last heartbeat of a node: a renewed lease, or a status with a new heartbeat time. */
function observe(node: Node, run: ReconcileRun, { nodes }: State): Observation {
  const { name = '', uid = '' } = node.metadata ?? {};
  const renewed = run.read(Lease).get(`${leaseNamespace}/${name}`)?.spec?.renewTime ?? '';
  const reported = node.status?.conditions?.find(({ type }) => type === 'Ready')?.lastHeartbeatTime ?? '';
  const heartbeat = `${renewed} ${reported}`;
  const now = run.clock.monotonic();
  let observed = nodes.get(name);
  if (observed?.uid !== uid) {
    observed = { uid, heartbeat, seenAt: now, ready: undefined, lostAt: undefined };
    nodes.set(name, observed);
    report(run, node, 'RegisteredNode', `Registered Node ${name} in Controller`);
  } else if (observed.heartbeat !== heartbeat) {
    observed.heartbeat = heartbeat;
    observed.seenAt = now;
  }
  return observed;
}

/** Sets the conditions that the agent reports to Unknown. Returns false when they are Unknown already. */
async function reportUnknown(node: Node, { client, clock }: ReconcileRun): Promise<boolean> {
  const now = formatTime(new Date(clock.now()));
  const conditions: readonly coreV1.NodeCondition[] = node.status?.conditions ?? [];
  const changed = conditions.map((condition) =>
    (heartbeatTypes as readonly string[]).includes(condition.type) && condition.status !== 'Unknown'
      ? {
          ...condition,
          status: 'Unknown',
          reason: 'NodeStatusUnknown',
          message: 'Kubelet stopped posting node status.',
          lastTransitionTime: now,
        }
      : condition,
  );
  const missing = heartbeatTypes
    .filter((type) => !conditions.some((condition) => condition.type === type))
    .map((type) => ({
      type,
      status: 'Unknown',
      reason: 'NodeStatusNeverUpdated',
      message: 'Kubelet never posted node status.',
      lastHeartbeatTime: node.metadata?.creationTimestamp ?? now,
      lastTransitionTime: now,
    }));
  if (missing.length === 0 && changed.every((condition, index) => condition === conditions[index])) return false;
  const reported: Node = { ...node, status: { ...node.status, conditions: [...changed, ...missing] } };
  await client.resource(Node).updateSubresource(node.metadata?.name ?? '', 'status', reported);
  return true;
}

/** Records when a node stops being ready; services no longer use the pods of an unreachable one. */
async function reportPods(node: Node, observed: Observation, run: ReconcileRun): Promise<void> {
  const ready = readyStatus(node);
  const { name = '' } = node.metadata ?? {};
  // An agent that reports NotReady also reports the state of its pods. An unreachable agent reports nothing.
  if (ready === 'Unknown') {
    if (observed.ready === 'True')
      run.event(node, 'Normal', 'NodeNotReady', `Node ${name} status is now: NodeNotReady`);
    for (const pod of run.read(Pod).by(podsByNode, name)) if (isReady(pod)) await reportNotReady(pod, run);
  }
  observed.ready = ready;
  if (ready === 'True') observed.lostAt = undefined;
  else observed.lostAt ??= run.clock.monotonic();
}

async function reportNotReady(pod: Pod, run: ReconcileRun): Promise<void> {
  const { name = '', namespace = '', uid } = pod.metadata ?? {};
  const lastTransitionTime = formatTime(new Date(run.clock.now()));
  const status = { conditions: [{ type: 'Ready', status: 'False', lastTransitionTime }] };
  try {
    const body = { metadata: { uid }, status };
    await run.client.resource(Pod).namespace(namespace).patchSubresource(name, 'status', 'strategic', body);
    run.event(pod, 'Warning', 'NodeNotReady', 'Node is not ready');
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

/**
 * Sets the taints for the conditions of a node. The taint that evicts pods is limited by the eviction rate of the zone.
 */
async function taint(node: Node, observed: Observation, { nodes, zones }: State, run: ReconcileRun): Promise<void> {
  const now = run.clock.monotonic();
  let evicting = evictionTaint(node);
  const isEvicting = node.spec?.taints?.some(({ key, effect }) => effect === 'NoExecute' && nodeTaints.includes(key));
  if (evicting !== undefined || isEvicting || zones.disrupted) {
    if (zones.update(run.read(Node).list())) {
      // After a disruption of all zones, the grace period of each node starts again.
      for (const other of nodes.values()) other.seenAt = now;
    }
    // When several nodes fail at the same time, all of them are counted before the first one is drained.
    const isCounted = now - (observed.lostAt ?? now) >= monitorPeriodMs;
    const mayEvict = () => isEvicting || (isCounted && zones.tryEvict(zoneOf(node), now));
    if (zones.disrupted || (evicting !== undefined && !mayEvict())) evicting = undefined;
  }
  const taints = withTaints(node, schedulingTaints(node), evicting, run.clock.now());
  if (taints !== undefined) await writeTaints(node, taints, run);
}
