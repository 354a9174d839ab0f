import { missingIsUndefined } from '@keelson/client';
import {
  type ControllerDefinition,
  type ReconcileResult,
  type ReconcileRun,
  relatedKind,
} from '@keelson/controller-kit';
import { formatTime, isStatusError, StatusReason } from '@keelson/core';
import { Lease, Node, Pod, type PodCondition, type PodSpec } from '@keelson/kinds';

/** Interval for checking conditions whose change triggers no event, such as elapsed time. */
const recheckMs = 20_000;
/** Time that a missing node is given to register before its pods are deleted. */
const quarantineMs = 40_000;
/** A node whose Lease was not renewed for this time is not ready, regardless of its last reported conditions. */
const nodeGracePeriodMs = 50_000;
const concurrentDeletes = 8;
const nodeGone = { reason: 'DeletionByPodGC', message: 'PodGC: node no longer exists' } as const;

/** Work queue key for unbound pods and for ended pods. No node has an empty name. */
const noNode = '';

const isDeleting = ({ metadata }: Pod) => metadata?.deletionTimestamp !== undefined;
const isEnded = ({ status }: Pod) => status?.phase === 'Succeeded' || status?.phase === 'Failed';

/** Index of pods by node; '' for pods that are bound to no node. */
const byNode = ({ spec }: Pod) => [spec?.nodeName ?? noNode];
/** Index of pods that have ended. */
const ended = (pod: Pod) => (isEnded(pod) ? ['yes'] : []);

/** The fields of a pod that are read here. */
function readFields({ metadata = {}, spec, status }: Pod): Pod {
  const { namespace, name, uid, resourceVersion, creationTimestamp, deletionTimestamp } = metadata;
  return {
    metadata: { namespace, name, uid, resourceVersion, creationTimestamp, deletionTimestamp },
    spec: { nodeName: spec?.nodeName } as PodSpec,
    status: { phase: status?.phase, reason: status?.reason },
  } as Pod;
}

/**
 * Deletes pods that no agent will terminate: those bound to a node that does not exist, those being deleted on a node
 * that an administrator has marked as out of service, those being deleted before they were bound, and the oldest ended
 * pods beyond the threshold. Rules and times are those of the pod garbage collector of kube-controller-manager.
 *
 * @param options.terminatedPodThreshold number of ended pods that are kept; the oldest others are deleted. Default
 *   12,500; 0 keeps all
 * @param options.sharesPods true: other controllers of the process read whole pods, so that this one uses their copy
 */
export function podGarbageCollector({
  terminatedPodThreshold = 12_500,
  sharesPods = false,
} = {}): ControllerDefinition<Node> {
  /** Monotonic time since which a node with bound pods is missing. */
  const missingSince = new Map<string, number>();
  let nextCount = 0;
  return {
    name: 'pod-garbage-collector-controller',
    kind: Node,
    related: [
      relatedKind(
        Pod,
        (pod, before, read) => {
          const node = pod.spec?.nodeName ?? noNode;
          const concernsNode = isDeleting(pod) || (node !== noNode && read(Node).get(node) === undefined);
          return [...(concernsNode ? [node] : []), ...(isEnded(pod) && !(before && isEnded(before)) ? [noNode] : [])];
        },
        sharesPods ? {} : { keep: readFields },
      ),
    ],
    reconcile: async (node, run) => {
      missingSince.delete(run.key);
      const deleting = run.read(Pod).by(byNode, run.key).filter(isDeleting);
      if (deleting.length === 0 || !isOutOfService(node)) return undefined;
      if (isReady(node) && (await renewsLease(run))) return { againAfterMs: recheckMs };
      await removeAll(run, deleting);
      return undefined;
    },
    deleted: async (run) => {
      const pods = run.read(Pod).by(byNode, run.key);
      if (run.key === noNode) {
        await removeAll(run, pods.filter(isDeleting));
        const waitMs = nextCount - run.clock.monotonic();
        if (waitMs > 0) return { againAfterMs: waitMs };
        nextCount = run.clock.monotonic() + recheckMs;
        await removeAll(run, excess(run, terminatedPodThreshold));
        return undefined;
      }
      return removeOrphans(run, pods, missingSince);
    },
  };
}

/** Removes the pods of a node that has been missing for the quarantine and does not exist on the server. */
async function removeOrphans(
  run: ReconcileRun,
  pods: readonly Pod[],
  missingSince: Map<string, number>,
): Promise<ReconcileResult> {
  if (pods.length === 0) {
    missingSince.delete(run.key);
    return undefined;
  }
  const now = run.clock.monotonic();
  const since = missingSince.get(run.key) ?? now;
  missingSince.set(run.key, since);
  if (now - since < quarantineMs) return { againAfterMs: quarantineMs - (now - since) };
  const found = await run.client.resource(Node).get(run.key).catch(missingIsUndefined);
  if (found === undefined) await removeAll(run, pods, nodeGone);
  return { againAfterMs: recheckMs };
}

/** The ended pods beyond the threshold: evicted ones first, then by age, then by name. */
function excess({ read }: ReconcileRun, threshold: number): Pod[] {
  const pods = read(Pod).by(ended, 'yes');
  return threshold <= 0 || pods.length <= threshold ? [] : pods.sort(oldestFirst).slice(0, pods.length - threshold);
}

function oldestFirst(a: Pod, b: Pod): number {
  const isEvicted = ({ status }: Pod) => status?.phase === 'Failed' && status.reason === 'Evicted';
  if (isEvicted(a) !== isEvicted(b)) return isEvicted(a) ? -1 : 1;
  const createdAt = ({ metadata }: Pod) => Date.parse(metadata?.creationTimestamp ?? '');
  return createdAt(a) - createdAt(b) || ((a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1);
}

function isOutOfService({ spec }: Node): boolean {
  return spec?.taints?.some(({ key }) => key === 'node.kubernetes.io/out-of-service') ?? false;
}

function isReady({ status }: Node): boolean {
  return status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false;
}

async function renewsLease({ client, clock, key }: ReconcileRun): Promise<boolean> {
  const leases = client.resource(Lease).namespace('kube-node-lease');
  const renewTime = (await leases.get(key).catch(missingIsUndefined))?.spec?.renewTime;
  return renewTime === undefined || clock.now() - Date.parse(renewTime) <= nodeGracePeriodMs;
}

async function removeAll(
  run: ReconcileRun,
  pods: readonly Pod[],
  condition?: Pick<PodCondition, 'reason' | 'message'>,
): Promise<void> {
  const queue = pods.values();
  const work = async () => {
    for (const pod of queue) if (!run.signal.aborted) await remove(run, pod, condition);
  };
  const results = await Promise.allSettled(Array.from({ length: Math.min(concurrentDeletes, pods.length) }, work));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/** Sets the phase Failed, because no agent will report the status, and deletes the pod without a grace period. */
async function remove(
  { clock, client, logger }: ReconcileRun,
  pod: Pod,
  condition: Pick<PodCondition, 'reason' | 'message'> | undefined,
): Promise<void> {
  const { namespace = '', name = '', uid = '' } = pod.metadata ?? {};
  const pods = client.resource(Pod).namespace(namespace);
  const lastTransitionTime = formatTime(new Date(clock.now()));
  const conditions = condition && [{ type: 'DisruptionTarget', status: 'True', ...condition, lastTransitionTime }];
  try {
    if (!isEnded(pod)) {
      const status = { phase: 'Failed', ...(conditions && { conditions }) };
      await pods.patchSubresource(name, 'status', 'strategic', { metadata: { uid }, status });
    }
    await pods.delete(name, { gracePeriodSeconds: 0, preconditions: { uid } });
    logger.info('pod deleted', {
      component: 'pod-garbage-collector',
      pod: `${namespace}/${name}`,
      node: pod.spec?.nodeName,
      reason: condition?.reason,
    });
  } catch (err) {
    // The pod has been deleted, or another pod has its name.
    if (isStatusError(err, StatusReason.NotFound) || isStatusError(err, StatusReason.Conflict)) return;
    throw err;
  }
}
