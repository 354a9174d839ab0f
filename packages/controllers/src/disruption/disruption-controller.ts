import { missingIsUndefined } from '@keelson/client';
import {
  type ControllerDefinition,
  controllerOf,
  patchStatus,
  type ReconcileResult,
  type ReconcileRun,
  relatedKind,
} from '@keelson/controller-kit';
import {
  formatTime,
  isStatusError,
  type KindDefinition,
  type KubeObject,
  labelSelectorOf,
  type OwnerReference,
  StatusReason,
} from '@keelson/core';
import { Deployment, Pod, PodDisruptionBudget, ReplicaSet, ReplicationController, StatefulSet } from '@keelson/kinds';
import { isReady } from '../workload/pod-state.ts';
import { disruptionConditions } from './conditions.ts';

/** An evicted pod that is not being deleted after this time counts as healthy again. */
const deletionMs = 2 * 60_000;

type Read = ReconcileRun['read'];

const keyOf = ({ metadata }: KubeObject) => `${metadata?.namespace}/${metadata?.name}`;

const selects = ({ spec }: PodDisruptionBudget, pod: Pod) =>
  spec.selector !== undefined && labelSelectorOf(spec.selector).matches(pod.metadata?.labels ?? {});

const budgetsIn = ({ metadata }: KubeObject, read: Read) =>
  read(PodDisruptionBudget).inNamespace(metadata?.namespace ?? '');

function budgetsOfPod(pod: Pod, before: Pod | undefined, read: Read): string[] {
  return budgetsIn(pod, read)
    .filter((budget) => selects(budget, pod) || (before !== undefined && selects(budget, before)))
    .map(keyOf);
}

const budgetsOfNamespace = (object: KubeObject, _: unknown, read: Read) => budgetsIn(object, read).map(keyOf);

const scalable: readonly KindDefinition[] = [Deployment, ReplicaSet, ReplicationController, StatefulSet];

/** Keeps the status of disruption budgets: how many pods are healthy, and how many may be evicted. */
export const disruptionController: ControllerDefinition<PodDisruptionBudget> = {
  name: 'disruption-controller',
  eventSource: 'controllermanager',
  kind: PodDisruptionBudget,
  workers: 5,
  needsObjects: true,
  related: [relatedKind(Pod, budgetsOfPod), ...scalable.map((kind) => relatedKind(kind, budgetsOfNamespace))],
  reconcile,
};

async function reconcile(budget: PodDisruptionBudget, run: ReconcileRun): Promise<ReconcileResult> {
  const pods = run
    .read(Pod)
    .inNamespace(budget.metadata?.namespace ?? '')
    .filter((pod) => selects(budget, pod));
  if (pods.length === 0) run.event(budget, 'Normal', 'NoPods', 'No matching pods found');
  const nowMs = run.clock.now();
  const { disruptedPods, againAfterMs } = disrupted(budget, pods, run);
  let expected: Expectations;
  try {
    expected = await expectations(budget, pods, run);
  } catch (error) {
    if (!(error instanceof UnknownScale)) throw error;
    run.event(
      budget,
      'Warning',
      'CalculateExpectedPodCountFailed',
      `Failed to calculate the number of expected pods: ${error.message}`,
    );
    await setFailed(budget, run, error.message);
    return undefined;
  }
  if (expected.unmanaged) run.event(budget, 'Warning', 'UnmanagedPods', unmanagedText(budget));
  const currentHealthy = pods.filter(
    (pod) =>
      pod.metadata?.deletionTimestamp === undefined &&
      !Object.hasOwn(disruptedPods, pod.metadata?.name ?? '') &&
      isReady(pod),
  ).length;
  const disruptionsAllowed = expected.pods <= 0 ? 0 : Math.max(currentHealthy - expected.healthy, 0);
  const observedGeneration = budget.metadata?.generation;
  await patchStatus(run, PodDisruptionBudget, budget, {
    observedGeneration,
    disruptedPods: Object.keys(disruptedPods).length > 0 ? disruptedPods : undefined,
    disruptionsAllowed,
    currentHealthy,
    desiredHealthy: expected.healthy,
    expectedPods: expected.pods,
    conditions: disruptionConditions(
      budget.status?.conditions,
      disruptionsAllowed,
      observedGeneration,
      formatTime(new Date(nowMs)),
    ),
  });
  return againAfterMs === undefined ? undefined : { againAfterMs };
}

/** Permits no evictions, because the scale of the workload is unknown. */
async function setFailed(budget: PodDisruptionBudget, run: ReconcileRun, message: string): Promise<void> {
  const at = formatTime(new Date(run.clock.now()));
  const conditions = disruptionConditions(budget.status?.conditions, 0, budget.status?.observedGeneration, at).map(
    (one) => (one.type === 'DisruptionAllowed' ? { ...one, reason: 'SyncFailed', message } : one),
  );
  await patchStatus(run, PodDisruptionBudget, budget, { disruptionsAllowed: 0, conditions });
}

/**
 * Evicted pods whose deletion is still expected, and the milliseconds until the next of them counts as healthy again.
 */
function disrupted({ status, metadata }: PodDisruptionBudget, pods: readonly Pod[], run: ReconcileRun) {
  const nowMs = run.clock.now();
  const disruptedPods: Record<string, string> = {};
  let againAfterMs: number | undefined;
  for (const pod of pods) {
    const name = pod.metadata?.name ?? '';
    const known = status?.disruptedPods ?? {};
    const at = Object.hasOwn(known, name) ? known[name] : undefined;
    if (at === undefined || pod.metadata?.deletionTimestamp !== undefined) continue;
    const leftMs = Date.parse(at) + deletionMs - nowMs;
    if (leftMs < 0) {
      const text = `Pod was expected by PDB ${metadata?.namespace}/${metadata?.name} to be deleted but it wasn't`;
      run.event(pod, 'Warning', 'NotDeleted', text);
      continue;
    }
    disruptedPods[name] = at;
    againAfterMs = Math.min(againAfterMs ?? leftMs + 1, leftMs + 1);
  }
  return { disruptedPods, againAfterMs };
}

/** The numbers of pods that should exist, and that must be healthy. */
interface Expectations {
  readonly pods: number;
  readonly healthy: number;
  /** True when pods without a controller make the numbers wrong. */
  readonly unmanaged: boolean;
}

async function expectations(
  { spec, metadata }: PodDisruptionBudget,
  pods: readonly Pod[],
  run: ReconcileRun,
): Promise<Expectations> {
  const { minAvailable, maxUnavailable } = spec;
  if (maxUnavailable === undefined) {
    if (typeof minAvailable === 'number') return { pods: pods.length, healthy: minAvailable, unmanaged: false };
    if (minAvailable === undefined) return { pods: 0, healthy: 0, unmanaged: false };
  }
  const scale = await expectedScale(metadata?.namespace ?? '', pods, run);
  const unmanaged = pods.some((pod) => controllerOf(pod) === undefined);
  const healthy =
    maxUnavailable === undefined
      ? scaled(minAvailable ?? 0, scale)
      : Math.max(scale - scaled(maxUnavailable, scale), 0);
  return { pods: scale, healthy, unmanaged };
}

function unmanagedText({ spec: { selector = {} } }: PodDisruptionBudget): string {
  const labels = Object.entries(selector.matchLabels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const expressions = (selector.matchExpressions ?? []).map(
    ({ key, operator, values = [] }) =>
      `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${values.join(' ')}],},`,
  );
  // The form in which Kubernetes prints a selector.
  const printed =
    `&LabelSelector{MatchLabels:map[string]string{${labels.map(([key, value]) => `${key}: ${value},`).join('')}},` +
    `MatchExpressions:[]LabelSelectorRequirement{${expressions.join('')}},}`;
  return (
    `Pods selected by this PodDisruptionBudget (selector: ${printed}) were found to be unmanaged. As a result, the ` +
    'status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these ' +
    'pods please set ".spec.minAvailable" field of the PDB to an integer value.'
  );
}

/** A number, or a percentage of `total`, rounded up. */
function scaled(value: number | string, total: number): number {
  return typeof value === 'number' ? value : Math.ceil((Number.parseInt(value, 10) * total) / 100);
}

class UnknownScale extends Error {}

/** The sum of the scales of all controllers of the pods. Pods without a controller are not counted. */
async function expectedScale(namespace: string, pods: readonly Pod[], run: ReconcileRun): Promise<number> {
  const scales = new Map<string, number>();
  const seen = new Set<string>();
  for (const pod of pods) {
    const owner = controllerOf(pod);
    if (owner === undefined || seen.has(owner.uid)) continue;
    seen.add(owner.uid);
    const found = scaleInCopies(namespace, owner, run.read) ?? (await scaleOnServer(namespace, owner, run));
    if (found === undefined)
      throw new UnknownScale(`found no controllers for pod ${JSON.stringify(pod.metadata?.name)}`);
    scales.set(found.uid, found.replicas);
  }
  return [...scales.values()].reduce((sum, replicas) => sum + replicas, 0);
}

interface Scale {
  readonly uid: string;
  readonly replicas: number;
}

/**
 * The scale of a controller of a built-in kind, from local copies. ReplicaSets of a Deployment have the scale of the
 * Deployment.
 */
function scaleInCopies(namespace: string, owner: OwnerReference, read: Read): Scale | undefined {
  const key = `${namespace}/${owner.name}`;
  const group = owner.apiVersion.split('/').at(-2) ?? '';
  const isApps = group === 'apps' || group === 'extensions';
  const found =
    owner.kind === 'ReplicationController' && group === ''
      ? read(ReplicationController).get(key)
      : isApps && owner.kind === 'StatefulSet'
        ? read(StatefulSet).get(key)
        : isApps && owner.kind === 'Deployment'
          ? read(Deployment).get(key)
          : isApps && owner.kind === 'ReplicaSet'
            ? read(ReplicaSet).get(key)
            : undefined;
  if (found === undefined || found.metadata?.uid !== owner.uid) return undefined;
  const above = controllerOf(found);
  const deployment = above?.kind === 'Deployment' ? scaleInCopies(namespace, above, read) : undefined;
  return deployment ?? { uid: owner.uid, replicas: found.spec.replicas ?? 1 };
}

/** The scale of a controller of another kind, from its subresource. */
async function scaleOnServer(namespace: string, owner: OwnerReference, run: ReconcileRun): Promise<Scale | undefined> {
  const versionOf = (one: { group: string; version: string }) =>
    one.group === '' ? one.version : `${one.group}/${one.version}`;
  const served = await run.client.discover();
  const resource = served.find((one) => one.kind === owner.kind && versionOf(one) === owner.apiVersion);
  if (resource === undefined)
    throw new UnknownScale(
      `no matches for kind ${JSON.stringify(owner.kind)} in version ${JSON.stringify(owner.apiVersion)}`,
    );
  const objects = run.client.dynamic(resource).namespace(namespace);
  try {
    const scale: KubeObject & { readonly spec?: { readonly replicas?: number } } = await objects.getSubresource(
      owner.name,
      'scale',
    );
    return scale.metadata?.uid === owner.uid ? { uid: owner.uid, replicas: scale.spec?.replicas ?? 0 } : undefined;
  } catch (error) {
    if (!isStatusError(error, StatusReason.NotFound)) throw error;
  }
  // The response does not state whether the object is missing or the kind has no such subresource.
  if ((await objects.get(owner.name).catch(missingIsUndefined)) === undefined) return undefined;
  const name = resource.group === '' ? resource.resource : `${resource.resource}.${resource.group}`;
  throw new UnknownScale(`${name} does not implement the scale subresource`);
}
