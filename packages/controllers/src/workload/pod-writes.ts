import { ownerReference, type ReconcileRun } from '@keelson/controller-kit';
import { isStatusError, type KindDefinition, type KubeObject, namePrefixErrors, StatusReason } from '@keelson/core';
import { Pod, type PodTemplateSpec } from '@keelson/kinds';

/** Maximum number of pods that one run creates or deletes. */
export const burstReplicas = 500;

/** A pod object made of a template, with a controller reference to its owner and a generated name. */
export function podOf(template: PodTemplateSpec, kind: KindDefinition, owner: KubeObject): Pod {
  const { labels, annotations, finalizers } = template.metadata ?? {};
  const name = owner.metadata?.name ?? '';
  return {
    metadata: {
      generateName: namePrefixErrors('dns1123Subdomain', `${name}-`).length === 0 ? `${name}-` : name,
      labels: { ...labels },
      ...(annotations ? { annotations: { ...annotations } } : {}),
      ...(finalizers ? { finalizers: [...finalizers] } : {}),
      ownerReferences: [ownerReference(kind, owner)],
    },
    spec: structuredClone(template.spec ?? { containers: [] }),
  };
}

/** Creates a pod for its owner, with the events SuccessfulCreate and FailedCreate. */
export async function createPod(run: ReconcileRun, owner: KubeObject, pod: Pod): Promise<void> {
  try {
    const created = await run.client
      .resource(Pod)
      .namespace(owner.metadata?.namespace ?? '')
      .create(pod);
    run.event(owner, 'Normal', 'SuccessfulCreate', `Created pod: ${created.metadata?.name}`);
  } catch (error) {
    // In a namespace that is being deleted every create fails. This is not an error of the owner.
    if (isNamespaceTerminating(error)) return;
    if (!run.signal.aborted) run.event(owner, 'Warning', 'FailedCreate', `Error creating: ${textOf(error)}`);
    throw error;
  }
}

/** Deletes a pod of an owner, with the events SuccessfulDelete and FailedDelete. */
export async function deletePod(run: ReconcileRun, owner: KubeObject, pod: Pod): Promise<void> {
  const { name = '', namespace = '', uid = '' } = pod.metadata ?? {};
  try {
    await run.client.resource(Pod).namespace(namespace).delete(name, { preconditions: { uid } });
    run.event(owner, 'Normal', 'SuccessfulDelete', `Deleted pod: ${name}`);
  } catch (error) {
    if (isGone(error)) return;
    if (!run.signal.aborted) run.event(owner, 'Warning', 'FailedDelete', `Error deleting: ${textOf(error)}`);
    throw error;
  }
}

/** True when the object no longer exists, or another one has its name. */
export function isGone(error: unknown): boolean {
  return isStatusError(error, StatusReason.NotFound) || isStatusError(error, StatusReason.Conflict);
}

export function isNamespaceTerminating(error: unknown): boolean {
  if (!isStatusError(error)) return false;
  return error.status.details?.causes?.some(({ reason }) => reason === 'NamespaceTerminating') ?? false;
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Calls `work` for each item in batches of 1, 2, 4 and so on, and stops after a batch with a failure. If all creates
 * would fail for the same reason, such as a quota, only one is attempted.
 */
export async function slowStart<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let size = 1;
  for (let at = 0; at < items.length; at += size, size *= 2) await inParallel(items.slice(at, at + size), work);
}

/** Calls `work` for all items concurrently, waits for all of them, and throws the first failure. */
export async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const results = await Promise.allSettled(items.map(work));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
