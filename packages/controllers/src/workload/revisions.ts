import { claim, isControlledBy, ownerReference, type ReconcileRun } from '@keelson/controller-kit';
import { isStatusError, type KindDefinition, type KubeObject, type LabelSelector, StatusReason } from '@keelson/core';
import { ControllerRevision, type PodTemplateSpec } from '@keelson/kinds';
import { canonicalJson, sameJson, shortHash, withSortedKeys } from './template.ts';

/** Label of pods that contains the revision of their template. */
export const revisionLabel = 'controller-revision-hash';
/** Maximum length of the name of a revision without its hash. */
const maxPrefix = 223;

/** An object with a pod template whose revisions are kept. */
interface Templated extends KubeObject {
  spec: { template: PodTemplateSpec };
  status?: { collisionCount?: number };
}

export interface HistoryOptions<T extends Templated> {
  readonly run: ReconcileRun;
  readonly kind: KindDefinition<T>;
  readonly owner: T;
  readonly selector: LabelSelector;
  /** Label of a revision that contains its hash. */
  readonly hashLabel: string;
}

export interface History {
  /** The revision of the present template. */
  readonly current: ControllerRevision;
  /** All revisions, the lowest first; the present one is last. */
  readonly revisions: readonly ControllerRevision[];
  readonly collisionCount: number | undefined;
}

/**
 * Returns the revisions of an object. A missing revision of the present template is created. When the present template
 * has an older revision after a rollback, that revision gets the greatest number.
 */
export async function syncHistory<T extends Templated>(options: HistoryOptions<T>): Promise<History> {
  const { run, kind, owner, selector } = options;
  const found = await claim(run, { owner: kind, object: owner, kind: ControllerRevision, selector });
  found.sort(byRevision);
  const data = revisionData(owner.spec.template);
  const known = found.findLast((other) => sameJson(other.data, data));
  const last = found.at(-1)?.revision ?? 0;
  if (known === undefined) return create(options, data, found, Number(last) + 1);
  const others = found.filter((other) => other !== known);
  const { collisionCount } = owner.status ?? {};
  if (known === found.at(-1)) return { current: known, revisions: found, collisionCount };
  const { name = '', namespace = '', uid, resourceVersion } = known.metadata ?? {};
  const patch = { metadata: { uid, resourceVersion }, revision: Number(last) + 1 };
  const current = await run.client.resource(ControllerRevision).namespace(namespace).patch(name, 'merge', patch);
  return { current, revisions: [...others, current], collisionCount };
}

async function create<T extends Templated>(
  { run, kind, owner, hashLabel }: HistoryOptions<T>,
  data: Record<string, unknown>,
  others: readonly ControllerRevision[],
  revision: number,
): Promise<History> {
  const { name: prefix = '', namespace = '', annotations } = owner.metadata ?? {};
  const client = run.client.resource(ControllerRevision).namespace(namespace);
  for (let { collisionCount } = owner.status ?? {}; ; collisionCount = (collisionCount ?? 0) + 1) {
    const hash = shortHash(`${canonicalJson(data)}${collisionCount ?? ''}`);
    const name = `${prefix.slice(0, maxPrefix)}-${hash}`;
    const created: ControllerRevision = {
      metadata: {
        name,
        labels: { ...owner.spec.template.metadata?.labels, [hashLabel]: hash },
        ...(annotations === undefined ? {} : { annotations }),
        ownerReferences: [ownerReference(kind, owner)],
      },
      data,
      revision,
    };
    const current = await client.create(created).catch(async (error: unknown) => {
      if (!isStatusError(error, StatusReason.AlreadyExists)) throw error;
      const existing = await client.get(name);
      return isControlledBy(existing, owner) && sameJson(existing.data, data) ? existing : undefined;
    });
    if (current !== undefined) return { current, revisions: [...others, current], collisionCount };
  }
}

/**
 * The template as a strategic merge patch, which `kubectl rollout undo` applies to restore the template. Clients
 * compare its bytes with the template of a DaemonSet, so the keys are sorted as in Kubernetes.
 */
function revisionData(template: PodTemplateSpec): Record<string, unknown> {
  return { spec: { template: withSortedKeys({ ...template, $patch: 'replace' }) } };
}

/** The object with the template of a revision. */
export function atRevision<T extends Templated>(object: T, { data }: ControllerRevision): T {
  const stored = (data as { spec?: { template?: PodTemplateSpec & { $patch?: string } } } | undefined)?.spec?.template;
  if (stored === undefined) return object;
  const { $patch: _, ...template } = stored;
  return { ...object, spec: { ...object.spec, template } };
}

/** Deletes the oldest revisions beyond the limit, except those that are in use. */
export async function deleteOldRevisions(
  run: ReconcileRun,
  revisions: readonly ControllerRevision[],
  limit: number,
  inUse: (revision: ControllerRevision) => boolean,
): Promise<void> {
  const unused = revisions.filter((revision) => !inUse(revision));
  for (const { metadata = {} } of unused.slice(0, Math.max(0, unused.length - limit))) {
    const { name = '', namespace = '', uid = '' } = metadata;
    try {
      const revision = run.client.resource(ControllerRevision).namespace(namespace);
      await revision.delete(name, { preconditions: { uid } });
    } catch (error) {
      if (!isStatusError(error, StatusReason.NotFound)) throw error;
    }
  }
}

function byRevision(a: ControllerRevision, b: ControllerRevision): number {
  const difference = Number(a.revision ?? 0) - Number(b.revision ?? 0);
  return difference !== 0 ? difference : (a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1;
}
