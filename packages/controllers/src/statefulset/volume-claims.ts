import { keyOf } from '@keelson/client';
import { ownerReference, type ReconcileRun } from '@keelson/controller-kit';
import { isStatusError, type KubeObject, type OwnerReference, type ResourceClient, StatusReason } from '@keelson/core';
import { PersistentVolumeClaim, Pod, StatefulSet } from '@keelson/kinds';
import { textOf } from '../workload/pod-writes.ts';
import { sameJson } from '../workload/template.ts';
import { claimName } from './stateful-pods.ts';

/** An existing pod of the set, or one that is about to be created. */
interface Member {
  readonly run: ReconcileRun;
  readonly set: StatefulSet;
  readonly pod: Pod;
  readonly ordinal: number;
}

/** Creates the claims of a pod that do not exist. */
export async function createClaims({ run, set, pod, ordinal }: Member): Promise<void> {
  for (const template of set.spec.volumeClaimTemplates ?? []) {
    const name = claimName(set, template, ordinal);
    const existing = find(run, set, name);
    if (existing?.metadata?.deletionTimestamp !== undefined) throw new Error(`pvc ${name} is being deleted`);
    if (existing !== undefined) continue;
    const labels = { ...template.metadata?.labels, ...set.spec.selector?.matchLabels };
    const claim = { ...template, metadata: { ...template.metadata, name, labels } };
    const subject = `create Claim ${name} Pod ${pod.metadata?.name} in StatefulSet ${set.metadata?.name}`;
    try {
      await claimsOf(run, set).create(claim);
      run.event(set, 'Normal', 'SuccessfulCreate', `${subject} success`);
    } catch (error) {
      if (isStatusError(error, StatusReason.AlreadyExists)) continue;
      run.event(set, 'Warning', 'FailedCreate', `${subject} failed error: ${textOf(error)}`);
      throw new Error(`failed to create PVC ${name}: ${textOf(error)}`, { cause: error });
    }
  }
}

/**
 * Sets the owner references of the claims of a pod, so that the garbage collector deletes the claims as the retention
 * policy requires. With `whenDeleted`, the set owns the claims; with `whenScaled`, the pod owns them once it is being
 * removed by scaling.
 */
export async function retainClaims(member: Member & { readonly condemned: boolean }): Promise<void> {
  const { run, set, pod, ordinal, condemned } = member;
  const { whenDeleted, whenScaled } = set.spec.persistentVolumeClaimRetentionPolicy ?? {};
  const byPod = whenScaled === 'Delete' && condemned;
  const owners: OwnerReference[] = [
    ...(whenDeleted === 'Delete' && !byPod ? [ownerReference(StatefulSet, set)] : []),
    ...(byPod ? [ownerReference(Pod, pod)] : []),
  ];
  for (const template of set.spec.volumeClaimTemplates ?? []) {
    const claim = find(run, set, claimName(set, template, ordinal));
    if (claim === undefined || isStale(claim, set, pod)) continue;
    const present = claim.metadata?.ownerReferences ?? [];
    const others = present.filter(
      (owner) => !isReferenceTo(owner, StatefulSet, set) && !isReferenceTo(owner, Pod, pod),
    );
    const controlled = others.some(({ controller }) => controller);
    if (controlled && owners.length > 0) {
      const why = 'has a conflicting OwnerReference that acts as a manging controller';
      const message = `PersistentVolumeClaim ${claim.metadata?.name} ${why}, the retention policy is ignored for this claim`;
      run.event(set, 'Warning', 'ConflictingController', message);
    }
    const wanted = controlled ? others : [...others, ...owners];
    if (sameJson(present, wanted)) continue;
    const { name = '', uid, resourceVersion } = claim.metadata ?? {};
    const ownerReferences = wanted.length === 0 ? null : wanted;
    await claimsOf(run, set).patch(name, 'merge', { metadata: { uid, resourceVersion, ownerReferences } });
  }
}

/** True when a claim is about to be deleted with an earlier pod of the same name. A new pod must not use it. */
export function hasStaleClaim({ run, set, pod, ordinal }: Member): boolean {
  if (set.spec.persistentVolumeClaimRetentionPolicy?.whenScaled !== 'Delete') return false;
  for (const template of set.spec.volumeClaimTemplates ?? []) {
    const claim = find(run, set, claimName(set, template, ordinal));
    if (claim?.metadata?.ownerReferences?.some((owner) => isReferenceTo(owner, Pod, pod))) return true;
  }
  return false;
}

/** Keys of the StatefulSets that may use a claim, as far as the name of the claim shows. */
export function setsOf(claim: PersistentVolumeClaim, read: ReconcileRun['read']): readonly string[] {
  const { name = '', namespace = '' } = claim.metadata ?? {};
  const uses = ({ metadata, spec }: StatefulSet) =>
    spec.volumeClaimTemplates?.some((template) => name.startsWith(`${template.metadata?.name}-${metadata?.name}-`));
  return read(StatefulSet).inNamespace(namespace).filter(uses).map(keyOf);
}

/** True when an owner of the claim has the name of the set or pod and another uid. */
function isStale(claim: KubeObject, set: StatefulSet, pod: Pod): boolean {
  return (claim.metadata?.ownerReferences ?? []).some(
    (owner) =>
      (isReferenceTo(owner, StatefulSet, set) && owner.uid !== set.metadata?.uid) ||
      (isReferenceTo(owner, Pod, pod) && owner.uid !== pod.metadata?.uid),
  );
}

function isReferenceTo(
  owner: OwnerReference,
  kind: { readonly apiVersion: string; readonly kind: string },
  { metadata }: KubeObject,
): boolean {
  return owner.apiVersion === kind.apiVersion && owner.kind === kind.kind && owner.name === metadata?.name;
}

function claimsOf(run: ReconcileRun, set: StatefulSet): ResourceClient<PersistentVolumeClaim> {
  return run.client.resource(PersistentVolumeClaim).namespace(set.metadata?.namespace ?? '');
}

function find(run: ReconcileRun, set: StatefulSet, name: string): PersistentVolumeClaim | undefined {
  return run.read(PersistentVolumeClaim).get(`${set.metadata?.namespace}/${name}`);
}
