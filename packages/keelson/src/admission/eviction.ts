import { disruptionConditions } from '@keelson/controllers';
import {
  formatTime,
  isStatusError,
  type KindDefinition,
  labelSelectorOf,
  type Status,
  StatusError,
  StatusReason,
  type SubresourceCall,
  statusErrors,
} from '@keelson/core';
import { kindPrefix, objectCodecOf, objectKey } from '@keelson/core/internal';
import { type Eviction, Pod, PodDisruptionBudget } from '@keelson/kinds';
import { predicate, type StorageOfKind } from './cached-objects.ts';

type Call = SubresourceCall<Pod, Eviction>;
type DeleteOptions = Parameters<Call['parent']['delete']>[0];

const attempts = 20;
const maxDisruptedPods = 2000;
const refusalText = "Cannot evict pod as it would violate the pod's disruption budget.";
const success: Status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };

/** Makes evictions of pods respect disruption budgets. Returns every kind other than Pod unchanged. */
export function withDisruptionBudgets(kind: KindDefinition, storages: StorageOfKind): KindDefinition {
  if (kind !== (Pod as unknown)) return kind;
  return {
    ...kind,
    subresources: kind.subresources.map((subresource) =>
      subresource.type === 'action' && subresource.name === 'eviction'
        ? { ...subresource, run: (call: Call) => evict(call, storages) }
        : subresource,
    ),
  };
}

/**
 * Deletes a pod when its disruption budget permits it. The permission is a conditional write of the status of the
 * budget, so that concurrent evictions at several servers do not exceed it. Rules and messages are those of
 * kube-apiserver.
 */
async function evict(call: Call, storages: StorageOfKind) {
  const { parent, body } = call;
  if (body.metadata?.name !== parent.name)
    throw statusErrors.badRequest('name in URL does not match name in Eviction object');
  const { gracePeriodSeconds, preconditions, dryRun } = body.deleteOptions ?? {};
  const options: DeleteOptions = {
    dryRun: call.dryRun || (dryRun?.includes('All') ?? false),
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(preconditions?.uid ? { uid: preconditions.uid } : {}),
    ...(preconditions?.resourceVersion ? { resourceVersion: preconditions.resourceVersion } : {}),
  };
  for (let attempt = 1; ; attempt++) {
    const pod = await parent.get();
    if (!needsNoBudget(pod)) {
      await evictWithinBudget(call, pod, options, storages);
      break;
    }
    try {
      await remove(call, isEnded(pod) ? options : { ...versionOf(pod), ...options }, storages);
      break;
    } catch (error) {
      // A conflict: a pending pod may have started meanwhile. The eviction of a running pod must respect its budget.
      const retries = isStatusError(error, StatusReason.Conflict) && options.resourceVersion === undefined;
      if (!retries || attempt === attempts) throw error;
    }
  }
  return { code: 201 as const, object: success };
}

function versionOf({ metadata }: Pod): Pick<DeleteOptions, 'resourceVersion'> {
  return metadata?.resourceVersion === undefined ? {} : { resourceVersion: metadata.resourceVersion };
}

function isEnded({ metadata, status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed' || metadata?.deletionTimestamp !== undefined;
}

/** A pod that does not run is not available. Its eviction needs no permission of a disruption budget. */
function needsNoBudget(pod: Pod): boolean {
  return isEnded(pod) || pod.status?.phase === 'Pending';
}

async function evictWithinBudget(call: Call, pod: Pod, options: DeleteOptions, storages: StorageOfKind) {
  const [budget, ...more] = await budgetsOf(pod, storages);
  if (more.length > 0) {
    const message = 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';
    throw new StatusError({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, code: 500 });
  }
  if (budget === undefined) return remove(call, options, storages);
  if (!mayEvictUnready(pod, budget)) {
    await charge(budget, pod, call, options.dryRun ?? false, storages);
    return remove(call, options, storages);
  }
  try {
    await remove(call, { ...versionOf(pod), ...options }, storages);
  } catch (error) {
    if (!isStatusError(error, StatusReason.Conflict) || options.resourceVersion !== undefined) throw error;
    throw stillProcessing(budget);
  }
}

async function budgetsOf({ metadata }: Pod, storages: StorageOfKind): Promise<PodDisruptionBudget[]> {
  const prefix = `${kindPrefix(PodDisruptionBudget)}${metadata?.namespace ?? ''}/`;
  const stored = await storages.forKind(PodDisruptionBudget).list(prefix, { at: { at: 'latest' }, predicate });
  return Array.from(stored.objects(), (object) => object.value<PodDisruptionBudget>()).filter(
    ({ spec }) => spec.selector !== undefined && labelSelectorOf(spec.selector).matches(metadata?.labels ?? {}),
  );
}

/** A pod that is not ready may be evicted when the policy permits it, or when enough others are healthy. */
function mayEvictUnready({ status: pod }: Pod, { spec, status }: PodDisruptionBudget): boolean {
  if (pod?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True')) return false;
  if (spec.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true;
  const { currentHealthy = 0, desiredHealthy = 0 } = status ?? {};
  return desiredHealthy > 0 && currentHealthy >= desiredHealthy;
}

function stillProcessing({ metadata }: PodDisruptionBudget): StatusError {
  const message = `The disruption budget ${metadata?.name} is still being processed by the server.`;
  return statusErrors.tooManyRequests(refusalText, 10, [{ reason: 'DisruptionBudget', message }]);
}

/** @throws StatusError when the budget permits no eviction */
function checkBudget(budget: PodDisruptionBudget): void {
  const { observedGeneration = 0, disruptionsAllowed = 0, disruptedPods = {}, ...status } = budget.status ?? {};
  const name = budget.metadata?.name ?? '';
  const resource = { group: 'policy', resource: 'poddisruptionbudget' };
  if (observedGeneration < (budget.metadata?.generation ?? 0)) throw stillProcessing(budget);
  if (disruptionsAllowed < 0) {
    throw statusErrors.forbidden(resource, name, 'pdb disruptions allowed is negative');
  }
  if (Object.keys(disruptedPods).length > maxDisruptedPods) {
    const why = 'DisruptedPods map too big - too many evictions not confirmed by PDB controller';
    throw statusErrors.forbidden(resource, name, why);
  }
  if (disruptionsAllowed > 0) return;
  const { desiredHealthy = 0, currentHealthy = 0 } = status as NonNullable<PodDisruptionBudget['status']>;
  const needs = `needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
  const message = `The disruption budget ${name} ${needs}`;
  throw statusErrors.tooManyRequests(refusalText, 0, [{ reason: 'DisruptionBudget', message }]);
}

/** Subtracts one eviction from the budget, and records the pod until the controller has observed its deletion. */
async function charge(budget: PodDisruptionBudget, pod: Pod, call: Call, dryRun: boolean, storages: StorageOfKind) {
  checkBudget(budget);
  if (dryRun) return;
  const { namespace, name = '' } = budget.metadata ?? {};
  const storage = storages.forKind(PodDisruptionBudget);
  await storage.update(objectKey(PodDisruptionBudget, namespace, name), (current) => {
    if (current === undefined) throw statusErrors.notFound({ group: 'policy', resource: 'poddisruptionbudgets' }, name);
    const found = current.value<PodDisruptionBudget>();
    checkBudget(found);
    const status = found.status as NonNullable<PodDisruptionBudget['status']>;
    const disruptionsAllowed = status.disruptionsAllowed - 1;
    const at = formatTime(call.now);
    const charged: PodDisruptionBudget = {
      ...found,
      status: {
        ...status,
        disruptionsAllowed,
        disruptedPods: { ...status.disruptedPods, [pod.metadata?.name ?? '']: at },
        conditions: disruptionConditions(status.conditions, disruptionsAllowed, status.observedGeneration, at),
      },
    };
    return { do: 'write', json: objectCodecOf(PodDisruptionBudget).encode(charged) };
  });
}

/**
 * Writes the reason into the status of the pod, and deletes the pod. The server itself writes the reason, without
 * admission; the deletion fails when a precondition is not met.
 */
async function remove({ parent, now }: Call, options: DeleteOptions, storages: StorageOfKind): Promise<void> {
  if (options.dryRun) return parent.delete(options);
  const { uid, resourceVersion } = options;
  const key = objectKey(Pod, parent.namespace, parent.name);
  const { outcome, object } = await storages.forKind(Pod).update(key, (current) => {
    if (current === undefined) throw statusErrors.notFound({ group: '', resource: 'pods' }, parent.name);
    const pod = current.value<Pod>();
    const isMeant = (uid ?? pod.metadata?.uid) === pod.metadata?.uid;
    if (!isMeant || (resourceVersion ?? String(current.revision)) !== String(current.revision)) return { do: 'keep' };
    const known = (pod.status?.conditions ?? []).filter(({ type }) => type !== 'DisruptionTarget');
    const condition = {
      type: 'DisruptionTarget',
      status: 'True',
      lastTransitionTime: formatTime(now),
      reason: 'EvictionByEvictionAPI',
      message: 'Eviction API: evicting',
    };
    const stated: Pod = { ...pod, status: { ...pod.status, conditions: [...known, condition] } };
    return { do: 'write', json: objectCodecOf(Pod).encode(stated) };
  });
  const stated = resourceVersion !== undefined && outcome === 'updated';
  await parent.delete({ ...options, ...(stated ? { resourceVersion: String(object.revision) } : {}) });
}
