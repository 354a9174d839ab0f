import {
  type ControllerDefinition,
  claim,
  type ReconcileResult,
  type ReconcileRun,
  relatedKind,
} from '@keelson/controller-kit';
import { type appsV1, ControllerRevision, PersistentVolumeClaim, Pod, StatefulSet } from '@keelson/kinds';
import { writeStatus } from '../workload/object-status.ts';
import { atRevision, deleteOldRevisions, type History, syncHistory } from '../workload/revisions.ts';
import { relatedOrphans, selectorOf } from '../workload/selector.ts';
import { reconcilePods } from './reconcile-pods.ts';
import {
  firstOrdinal,
  isHealthy,
  isRunningAndReady,
  isTerminating,
  ordinalOf,
  podRevision,
  statefulPod,
} from './stateful-pods.ts';
import { setsOf } from './volume-claims.ts';

const hashLabel = 'controller.kubernetes.io/hash';

/** Keeps the pods of StatefulSets, which have stable names and storage. */
export const statefulSetController: ControllerDefinition<StatefulSet> = {
  name: 'statefulset-controller',
  kind: StatefulSet,
  workers: 5,
  owns: [Pod, ControllerRevision],
  related: [
    relatedKind(PersistentVolumeClaim, (claim, _before, read) => setsOf(claim, read)),
    relatedOrphans(Pod, StatefulSet, selectorOf),
  ],
  reconcile: reconcile,
};

async function reconcile(set: StatefulSet, run: ReconcileRun): Promise<ReconcileResult> {
  const selector = selectorOf(set);
  const pods = await claim(run, {
    ...{ owner: StatefulSet, object: set, kind: Pod, selector },
    matches: (pod) => ordinalOf(pod, set) !== undefined,
  });
  const history = await syncHistory({ run, kind: StatefulSet, owner: set, selector, hashLabel });
  const update = history.current;
  const current = history.revisions.find(({ metadata }) => metadata?.name === set.status?.currentRevision) ?? update;
  const updateRevision = update.metadata?.name ?? '';
  const currentRevision = current.metadata?.name ?? '';
  const currentSet = atRevision(set, current);
  const deleted = new Set<Pod>();
  let failure: unknown;
  try {
    if (set.metadata?.deletionTimestamp === undefined) {
      const newPod = (ordinal: number) =>
        keepsOldTemplate(set, ordinal)
          ? statefulPod(currentSet, ordinal, currentRevision)
          : statefulPod(set, ordinal, updateRevision);
      await reconcilePods({ run, set, pods, updateRevision, newPod, deleted });
    }
  } catch (error) {
    failure = error;
  }
  if (run.signal.aborted) return undefined;
  const status = statusOf(set, pods, deleted, { currentRevision, updateRevision }, history, run.clock.now());
  await writeStatus(run, StatefulSet, set, status);
  if (failure !== undefined) throw failure;
  const used = new Set([...pods.map(podRevision), currentRevision, updateRevision]);
  const limit = set.spec.revisionHistoryLimit ?? 10;
  const inUse = ({ metadata }: ControllerRevision) => used.has(metadata?.name ?? '');
  if (limit >= 0) await deleteOldRevisions(run, history.revisions, limit, inUse);
  const { minReadySeconds = 0, replicas = 1 } = set.spec;
  return minReadySeconds > 0 && status.availableReplicas !== replicas
    ? { againAfterMs: minReadySeconds * 1000 }
    : undefined;
}

/**
 * True when a missing pod must be created from the old template: its ordinal is below the partition, or, without a
 * partition, below the number of pods that are not yet replaced.
 */
function keepsOldTemplate(set: StatefulSet, ordinal: number): boolean {
  if (set.spec.updateStrategy?.type !== 'RollingUpdate') return false;
  const { rollingUpdate } = set.spec.updateStrategy;
  const kept = rollingUpdate === undefined ? (set.status?.currentReplicas ?? 0) : (rollingUpdate.partition ?? 0);
  return ordinal < firstOrdinal(set) + kept;
}

function statusOf(
  set: StatefulSet,
  pods: readonly Pod[],
  deleted: ReadonlySet<Pod>,
  revisions: { readonly currentRevision: string; readonly updateRevision: string },
  { collisionCount }: History,
  now: number,
): appsV1.StatefulSetStatus {
  const { currentRevision, updateRevision } = revisions;
  const { replicas: desired = 1 } = set.spec;
  const remaining = pods.filter((pod) => !isTerminating(pod) && !deleted.has(pod));
  const countOf = (revision: string) => remaining.filter((pod) => podRevision(pod) === revision).length;
  const ready = pods.filter((pod) => isRunningAndReady(pod) && !deleted.has(pod)).length;
  const updated = countOf(updateRevision);
  const isRolling = set.spec.updateStrategy?.type === 'RollingUpdate';
  const isComplete = isRolling && [updated, ready, pods.length].every((count) => count === desired);
  const currentReplicas = isComplete ? updated : countOf(currentRevision);
  const { generation } = set.metadata ?? {};
  const { conditions } = set.status ?? {};
  return {
    replicas: pods.length,
    availableReplicas: remaining.filter((pod) => isHealthy(pod, set, now)).length,
    currentRevision: isComplete ? updateRevision : currentRevision,
    updateRevision,
    collisionCount: collisionCount ?? 0,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    ...(ready > 0 ? { readyReplicas: ready } : {}),
    ...(currentReplicas > 0 ? { currentReplicas } : {}),
    ...(updated > 0 ? { updatedReplicas: updated } : {}),
    ...(conditions === undefined ? {} : { conditions }),
  };
}
