import {
  type AnyController,
  addFinalizer,
  type ControllerDefinition,
  type ObjectReader,
  type ReconcileRun,
  relatedKind,
  removeFinalizer,
} from '@keelson/controller-kit';
import { PersistentVolume, PersistentVolumeClaim, Pod } from '@keelson/kinds';

const claimFinalizer = 'kubernetes.io/pvc-protection';
const volumeFinalizer = 'kubernetes.io/pv-protection';

/** Pods of a namespace as the server had them, for the claims that were being deleted before. */
interface ListedPods {
  /** The uids of those claims. */
  readonly claims: ReadonlySet<string | undefined>;
  /** Keys of the claims in use. */
  readonly used: ReadonlySet<string>;
}

/** The last list of each running controller, by its pod reader: claims of one namespace are often deleted together. */
const listed = new WeakMap<ObjectReader<Pod>, ListedPods>();
const pageSize = 500;

/** Keeps a claim that is being deleted until no pod uses it. */
export const claimProtection: ControllerDefinition<PersistentVolumeClaim> = {
  name: 'persistentvolumeclaim-protection-controller',
  kind: PersistentVolumeClaim,
  needsObjects: true,
  related: [relatedKind(Pod, (pod) => claimKeys(pod))],
  reconcile: async (claim, run) => {
    if (claim.metadata?.deletionTimestamp === undefined) {
      await addFinalizer(run, PersistentVolumeClaim, claim, claimFinalizer);
      return undefined;
    }
    const isUsed = run.read(Pod).by(claimKeys, run.key).some(isUser) || (await isUsedOnServer(claim, run));
    if (!isUsed) await removeFinalizer(run, PersistentVolumeClaim, claim, claimFinalizer);
    return undefined;
  },
};

/**
 * True for a pod that uses its claims. One without a node does not use them yet, and is not assigned to a node while a
 * claim is being deleted.
 */
function isUser({ spec, status }: Pod): boolean {
  const hasEnded = status?.phase === 'Succeeded' || status?.phase === 'Failed';
  return Boolean(spec.nodeName) && !hasEnded;
}

/**
 * Asks the server for users of a claim. Kinds are watched separately, so that the deletion of a claim may be observed
 * before the pod that uses it.
 */
async function isUsedOnServer({ metadata }: PersistentVolumeClaim, run: ReconcileRun): Promise<boolean> {
  const { namespace = '', uid } = metadata ?? {};
  const last = listed.get(run.read(Pod));
  if (last?.claims.has(uid) && !last.used.has(run.key)) return false;
  const deleting = run
    .read(PersistentVolumeClaim)
    .inNamespace(namespace)
    .filter(({ metadata: { deletionTimestamp } }) => deletionTimestamp !== undefined);
  const used = new Set<string>();
  const pods = run.client.resource(Pod).namespace(namespace);
  let token: string | undefined;
  do {
    const page = await pods.list({ limit: pageSize, ...(token ? { continue: token } : {}) });
    for (const pod of page.items) if (isUser(pod)) for (const key of claimKeys(pod)) used.add(key);
    token = page.metadata.continue;
  } while (token);
  listed.set(run.read(Pod), { claims: new Set([uid, ...deleting.map(({ metadata: { uid: other } }) => other)]), used });
  return used.has(run.key);
}

/** Keeps a volume that is being deleted until it is no longer bound to a claim. */
export const volumeProtection: ControllerDefinition<PersistentVolume> = {
  name: 'persistentvolume-protection-controller',
  kind: PersistentVolume,
  reconcile: async (volume, run) => {
    if (volume.metadata?.deletionTimestamp === undefined)
      await addFinalizer(run, PersistentVolume, volume, volumeFinalizer);
    else if (volume.status?.phase !== 'Bound') await removeFinalizer(run, PersistentVolume, volume, volumeFinalizer);
    return undefined;
  },
};

/** The controllers that keep storage in use, and the finalizers by which they do. */
export const storageProtection: readonly { readonly controller: AnyController; readonly finalizer: string }[] = [
  { controller: volumeProtection, finalizer: volumeFinalizer },
  { controller: claimProtection, finalizer: claimFinalizer },
];

/** Keys of the claims of a pod. */
function claimKeys({ metadata, spec }: Pod): readonly string[] {
  return (spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => {
    const claim = persistentVolumeClaim?.claimName ?? (ephemeral && `${metadata?.name}-${name}`);
    return claim === undefined ? [] : [`${metadata?.namespace}/${claim}`];
  });
}
