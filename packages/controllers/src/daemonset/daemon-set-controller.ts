import { keyOf } from '@keelson/client';
import {
  type ControllerDefinition,
  claim,
  type ReconcileResult,
  type ReconcileRun,
  relatedKind,
} from '@keelson/controller-kit';
import { type appsV1, ControllerRevision, DaemonSet, Node, Pod } from '@keelson/kinds';
import { writeStatus } from '../workload/object-status.ts';
import { isAvailable, isReady } from '../workload/pod-state.ts';
import { deleteOldRevisions, revisionLabel, syncHistory } from '../workload/revisions.ts';
import { relatedOrphans, selectorOf } from '../workload/selector.ts';
import { sameJson } from '../workload/template.ts';
import { isUpdated } from './daemon-pods.ts';
import { FailedPodBackoff } from './failed-pod-backoff.ts';
import { managePods } from './manage-pods.ts';
import { byAssignmentAndAge, NodePods } from './node-pods.ts';
import { rollOut } from './rolling-update.ts';

/** Shared by all control planes of this process, because the keys contain the uid of the DaemonSet and the node. */
const backoff = new FailedPodBackoff();

/** Runs one pod of a DaemonSet on each matching node. */
export const daemonSetController: ControllerDefinition<DaemonSet> = {
  name: 'daemonset-controller',
  kind: DaemonSet,
  workers: 2,
  owns: [Pod, ControllerRevision],
  related: [
    relatedKind(Node, (node, before, read) => {
      const isSame =
        before !== undefined &&
        sameJson(before.metadata?.labels, node.metadata?.labels) &&
        sameJson(before.spec?.taints, node.spec?.taints);
      return isSame ? [] : read(DaemonSet).list().map(keyOf);
    }),
    relatedOrphans(Pod, DaemonSet, selectorOf),
  ],
  reconcile: reconcile,
};

async function reconcile(set: DaemonSet, run: ReconcileRun): Promise<ReconcileResult> {
  if (set.metadata?.deletionTimestamp !== undefined) return undefined;
  const selector = selectorOf(set);
  const history = await syncHistory({ run, kind: DaemonSet, owner: set, selector, hashLabel: revisionLabel });
  const hash = history.current.metadata?.labels?.[revisionLabel] ?? '';
  const pods = await claim(run, { owner: DaemonSet, object: set, kind: Pod, selector });
  const nodes = new NodePods(set, run.read(Node).list(), pods);
  const context = { run, set, nodes, hash };
  let failure: unknown;
  let againAfterMs: number | undefined;
  try {
    const managed = await managePods({ ...context, backoff });
    againAfterMs = managed.againAfterMs;
    if (!managed.written && set.spec.updateStrategy?.type !== 'OnDelete') await rollOut(context);
    const used = new Set(pods.map(({ metadata }) => metadata?.labels?.[revisionLabel]));
    const old = history.revisions.filter((revision) => revision !== history.current);
    await deleteOldRevisions(run, old, set.spec.revisionHistoryLimit ?? 10, ({ metadata }) =>
      used.has(metadata?.labels?.[revisionLabel]),
    );
  } catch (error) {
    failure = error;
  }
  if (run.signal.aborted) return undefined;
  const status = statusOf(set, nodes, hash, run.clock.now(), history.collisionCount);
  await writeStatus(run, DaemonSet, set, status);
  if (failure !== undefined) throw failure;
  const { minReadySeconds = 0 } = set.spec;
  if (minReadySeconds > 0 && status.numberReady !== (status.numberAvailable ?? 0))
    againAfterMs = Math.min(againAfterMs ?? Number.POSITIVE_INFINITY, minReadySeconds * 1000);
  return againAfterMs === undefined ? undefined : { againAfterMs };
}

function statusOf(
  set: DaemonSet,
  nodes: NodePods,
  hash: string,
  now: number,
  collisionCount: number | undefined,
): appsV1.DaemonSetStatus {
  const counts = { desired: 0, current: 0, misscheduled: 0, ready: 0, available: 0, updated: 0 };
  for (const { fit, pods } of nodes.existing) {
    if (!fit.shouldRun) {
      if (pods.length > 0) counts.misscheduled += 1;
      continue;
    }
    counts.desired += 1;
    const [pod] = [...pods].sort(byAssignmentAndAge);
    if (pod === undefined) continue;
    counts.current += 1;
    if (isReady(pod)) counts.ready += 1;
    if (isAvailable(pod, set.spec.minReadySeconds ?? 0, now)) counts.available += 1;
    if (isUpdated(pod, set, hash)) counts.updated += 1;
  }
  const { generation } = set.metadata ?? {};
  const { conditions } = set.status ?? {};
  const unavailable = counts.desired - counts.available;
  return {
    currentNumberScheduled: counts.current,
    numberMisscheduled: counts.misscheduled,
    desiredNumberScheduled: counts.desired,
    numberReady: counts.ready,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    ...(counts.updated > 0 ? { updatedNumberScheduled: counts.updated } : {}),
    ...(counts.available > 0 ? { numberAvailable: counts.available } : {}),
    ...(unavailable > 0 ? { numberUnavailable: unavailable } : {}),
    ...(collisionCount === undefined ? {} : { collisionCount }),
    ...(conditions === undefined ? {} : { conditions }),
  };
}
