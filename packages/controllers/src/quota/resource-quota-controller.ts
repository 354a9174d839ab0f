import {
  type ControllerDefinition,
  patchStatus,
  type ReconcileResult,
  type ReconcileRun,
  relatedKind,
} from '@keelson/controller-kit';
import { compareQuantities, type KindDefinition, type KubeObject } from '@keelson/core';
import { PersistentVolumeClaim, Pod, ResourceQuota, Service } from '@keelson/kinds';
import { type Amounts, addAmounts, amountOf } from './amounts.ts';
import { scopesOf, usageOfKind } from './usage.ts';

const resyncMs = 5 * 60_000;
/** Interval for counting objects of kinds that the controller does not watch. */
const countMs = 10_000;
/**
 * The usage of a quota is lowered only when the quota has not been charged for this time. A server charges a quota
 * before it stores the object, so a charged object may still be missing from the list.
 */
const settledMs = 1_000;

/** Kinds whose usage depends on their fields. Objects of all other kinds are only counted. */
const measured: readonly KindDefinition[] = [Pod, Service, PersistentVolumeClaim];

const countPrefix = 'count/';
const plainCounts = ['configmaps', 'replicationcontrollers', 'resourcequotas', 'secrets'];

/** Keeps the status of quotas: the enforced limits, and the usage by the objects of the namespace. */
export function resourceQuotaController(): ControllerDefinition<ResourceQuota> {
  /** The last seen state of each quota, and the monotonic time since which it is unchanged. */
  const unchangedSince = new Map<string, { readonly version: string; readonly sinceMs: number }>();
  const keys = ({ metadata }: KubeObject, _: unknown, read: ReconcileRun['read']) =>
    read(ResourceQuota)
      .inNamespace(metadata?.namespace ?? '')
      .map((quota) => `${quota.metadata?.namespace}/${quota.metadata?.name}`);
  return {
    name: 'resourcequota-controller',
    kind: ResourceQuota,
    workers: 5,
    needsObjects: true,
    related: measured.map((kind) => relatedKind(kind, keys)),
    reconcile: async (quota, run) => {
      const version = quota.metadata?.resourceVersion ?? '';
      const nowMs = run.clock.monotonic();
      let seen = unchangedSince.get(run.key);
      if (seen?.version !== version) {
        seen = { version, sinceMs: nowMs };
        unchangedSince.set(run.key, seen);
      }
      return reconcile(quota, run, nowMs - seen.sinceMs);
    },
    deleted: async (run) => {
      unchangedSince.delete(run.key);
      return undefined;
    },
  };
}

async function reconcile(quota: ResourceQuota, run: ReconcileRun, unchangedMs: number): Promise<ReconcileResult> {
  const { hard = {} } = quota.spec;
  const known = quota.status?.used ?? {};
  const counted = Object.keys(hard).filter(isCounted);
  const again = { againAfterMs: counted.length > 0 ? countMs : resyncMs };
  const failures: unknown[] = [];
  const counts = await countAll(quota, counted, run, failures);
  const used = { ...zeroOfMeasured(hard), ...measuredUse(quota, run), ...counts };
  const lower = Object.keys(used).some((name) => {
    const before = amountOf(known, name);
    return before !== undefined && compareQuantities(used[name] ?? '0', before) < 0;
  });
  if (lower && unchangedMs < settledMs) {
    const raised = Object.entries(used).map(([name, amount]): [string, string] => {
      const before = amountOf(known, name);
      return [name, before !== undefined && compareQuantities(before, amount) > 0 ? before : amount];
    });
    await patchStatus(run, ResourceQuota, quota, { hard: { ...hard }, used: Object.fromEntries(raised) });
    return { againAfterMs: settledMs - unchangedMs };
  }
  await patchStatus(run, ResourceQuota, quota, { hard: { ...hard }, used });
  if (failures.length > 0) throw failures[0];
  return again;
}

/** Names of no kind have no use, as in Kubernetes. */
function zeroOfMeasured(hard: Amounts): Amounts {
  const usages = measured.map(usageOfKind);
  const names = Object.keys(hard).filter((name) => usages.some((usage) => usage?.counts(name)));
  return Object.fromEntries(names.map((name) => [name, '0']));
}

/**
 * True for resources such as `secrets` and `count/deployments.apps` that are measured only by the number of objects.
 */
function isCounted(resource: string): boolean {
  if (plainCounts.includes(resource)) return true;
  return (
    resource.startsWith(countPrefix) && !measured.some((kind) => resource === `${countPrefix}${kind.names.plural}`)
  );
}

function measuredUse(quota: ResourceQuota, run: ReconcileRun): Amounts {
  const { hard = {} } = quota.spec;
  const now = new Date(run.clock.now());
  const scopes = scopesOf(quota);
  let used: Amounts = {};
  for (const kind of measured) {
    const usage = usageOfKind(kind);
    if (!usage || !Object.keys(hard).some(usage.counts)) continue;
    for (const object of run.read(kind).inNamespace(quota.metadata?.namespace ?? '')) {
      if (scopes.every((scope) => usage.inScope(object, scope))) used = addAmounts(used, usage.usageOf(object, now));
    }
  }
  return Object.fromEntries(Object.entries(used).filter(([name]) => Object.hasOwn(hard, name)));
}

/**
 * Counts objects without reading all of them: the response to a list with `limit=1` contains the number of remaining
 * items. Objects of these kinds belong to no quota scope. A kind that is not served has no use. A kind that cannot be
 * listed keeps its known use, and its error is added to `failures`.
 */
async function countAll(
  quota: ResourceQuota,
  resources: readonly string[],
  run: ReconcileRun,
  failures: unknown[],
): Promise<Amounts> {
  if (resources.length === 0) return {};
  const scoped = scopesOf(quota).length > 0;
  const served = await run.client.discover();
  const found: Record<string, string> = {};
  for (const name of resources) {
    const plural = name.startsWith(countPrefix) ? name.slice(countPrefix.length) : name;
    const resource = served.find(
      (one) => (one.group === '' ? one.resource : `${one.resource}.${one.group}`) === plural,
    );
    if (!resource?.verbs.includes('list')) continue;
    if (scoped) {
      found[name] = '0';
      continue;
    }
    try {
      const objects = run.client.dynamic(resource).namespace(quota.metadata?.namespace ?? '');
      const { items, metadata } = await objects.list({ limit: 1 });
      found[name] = String(items.length + (metadata.remainingItemCount ?? 0));
    } catch (error) {
      failures.push(error);
      found[name] = amountOf(quota.status?.used ?? {}, name) ?? '0';
    }
  }
  return found;
}
