import { keyOf } from '@keelson/client';
import {
  type ControllerDefinition,
  type ObjectReader,
  type ReconcileResult,
  type ReconcileRun,
  relatedKind,
} from '@keelson/controller-kit';
import { formatTime } from '@keelson/core';
import { Node, Pod } from '@keelson/kinds';
import { podsByNode } from '../workload/pod-state.ts';
import { isGone } from '../workload/pod-writes.ts';
import { evictingTaints, evictionTime } from './taints.ts';

const disruption = {
  type: 'DisruptionTarget',
  status: 'True',
  reason: 'DeletionByTaintManager',
  message: 'Taint manager: deleting due to NoExecute taint',
} as const;

/** The time since which the eviction of a pod is planned, by key of the pod; one map for each running controller. */
const planned = new WeakMap<ObjectReader<Pod>, Map<string, number>>();

function plannedOf(run: ReconcileRun): Map<string, number> {
  const pods = run.read(Pod);
  const known = planned.get(pods) ?? new Map<string, number>();
  planned.set(pods, known);
  return known;
}

/**
 * Deletes pods that do not tolerate a NoExecute taint of their node. `tolerationSeconds` delays the deletion, measured
 * from the time at which the taint was added.
 */
export const taintEvictionController: ControllerDefinition<Pod> = {
  name: 'taint-eviction-controller',
  kind: Pod,
  related: [
    relatedKind(Node, (node, before, read) => {
      const [taints, earlier] = [evictingTaints(node), before === undefined ? [] : evictingTaints(before)];
      if (JSON.stringify(taints) === JSON.stringify(earlier)) return [];
      return read(Pod)
        .by(podsByNode, node.metadata?.name ?? '')
        .map((pod) => keyOf(pod));
    }),
  ],
  workers: 8,
  reconcile,
  deleted: async (run) => {
    plannedOf(run).delete(run.key);
    return undefined;
  },
};

async function reconcile(pod: Pod, run: ReconcileRun): Promise<ReconcileResult> {
  const { nodeName = '' } = pod.spec;
  if (nodeName === '' || pod.metadata?.deletionTimestamp !== undefined) return undefined;
  const node = run.read(Node).get(nodeName);
  const taints = node === undefined ? [] : evictingTaints(node);
  const plan = plannedOf(run);
  const now = run.clock.now();
  const since = plan.get(run.key) ?? now;
  const time = evictionTime(pod, taints, since);
  if (time === Number.POSITIVE_INFINITY) {
    if (plan.delete(run.key)) run.event(pod, 'Normal', 'TaintManagerEviction', `Cancelling deletion of Pod ${run.key}`);
    return undefined;
  }
  plan.set(run.key, since);
  if (time > now) return { againAfterMs: time - now };
  await evict(pod, run);
  return undefined;
}

async function evict(pod: Pod, run: ReconcileRun): Promise<void> {
  const { name = '', namespace = '', uid = '' } = pod.metadata ?? {};
  const pods = run.client.resource(Pod).namespace(namespace);
  run.event(pod, 'Normal', 'TaintManagerEviction', `Marking for deletion Pod ${run.key}`);
  const lastTransitionTime = formatTime(new Date(run.clock.now()));
  try {
    const status = { conditions: [{ ...disruption, lastTransitionTime }] };
    await pods.patchSubresource(name, 'status', 'strategic', { metadata: { uid }, status });
    await pods.delete(name, { preconditions: { uid } });
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}
