import type { ReconcileRun } from '@keelson/controller-kit';
import { type LabelSelector, parseDuration, quantityMilliValue, timeMs } from '@keelson/core';
import { type autoscalingV2, Pod, type PodMetrics } from '@keelson/kinds';
import { textOf } from '../workload/pod-writes.ts';

/** A starting pod uses more CPU than later, so samples within this time after the start may be ignored. */
const initializationMs = 5 * 60_000;
/** A pod whose last change to unready was within this time after its start has never been ready. */
const initialReadinessMs = 30_000;
const defaultTolerance = 0.1;
const metricsResource = { group: 'metrics.k8s.io', version: 'v1beta1', resource: 'pods' };

/** A query for the usage of one resource by the selected pods, or by one container of each pod. */
export interface UsageQuery {
  readonly run: ReconcileRun;
  readonly namespace: string;
  readonly selector: LabelSelector;
  /** The selector in the format of the query parameter `labelSelector`. */
  readonly labelSelector: string;
  readonly resource: string;
  readonly container?: string;
  readonly target: autoscalingV2.MetricTarget;
  readonly behavior: autoscalingV2.HorizontalPodAutoscalerBehavior | undefined;
  readonly currentReplicas: number;
}

/** The number of replicas that the usage of a resource requires, and the current usage. */
export interface Recommendation {
  readonly replicas: number;
  readonly current: autoscalingV2.MetricValueStatus;
}

interface Sample {
  /** Usage in thousandths of the unit of the resource. */
  readonly value: number;
  readonly timestamp: number;
  readonly windowMs: number;
}

type Samples = Map<string, number>;

/**
 * Computes the number of replicas at which the usage reaches its target. Pods that are not ready or have no sample
 * reduce the change: when scaling up, both count as idle; when scaling down, pods without a sample count as busy.
 *
 * @throws Error with the message for the conditions, as in Kubernetes
 */
export async function recommendedReplicas(query: UsageQuery): Promise<Recommendation> {
  const { run, namespace, selector, resource, target, behavior, currentReplicas } = query;
  const isUtilization = target.averageValue === undefined;
  const samples = await readSamples(query);
  const pods = run
    .read(Pod)
    .inNamespace(namespace)
    .filter(({ metadata }) => selector.matches(metadata?.labels));
  if (pods.length === 0) throw new Error('no pods returned by selector while calculating replica count');
  const { ready, unready, missing } = grouped(pods, samples, resource, run.clock.now());
  const used: Samples = new Map(ready.map((name) => [name, samples.get(name)?.value ?? 0]));
  if (used.size === 0) throw new Error('did not receive metrics for targeted pods (pods might be unready)');
  const requests = isUtilization ? requestsOf(pods, resource, query.container) : new Map<string, number>();
  const goal = isUtilization
    ? (target.averageUtilization ?? 0)
    : Number(quantityMilliValue(target.averageValue ?? '0'));
  const ratioOf = (values: Samples) => (isUtilization ? utilization(values, requests) : average(values)) / goal;
  const ratio = ratioOf(used);
  const current: autoscalingV2.MetricValueStatus = { averageValue: quantityOf(resource, average(used)) };
  if (isUtilization) current.averageUtilization = utilization(used, requests);
  const [low, high] = [behavior?.scaleDown, behavior?.scaleUp].map(toleranceOf);
  const isWithin = (value: number) => value >= 1 - (low ?? 0) && value <= 1 + (high ?? 0);
  const unchanged = { replicas: currentReplicas, current };
  const growsWithUnready = unready.length > 0 && ratio > 1;
  if (!growsWithUnready && missing.length === 0)
    return isWithin(ratio) ? unchanged : { replicas: ceil(ratio * ready.length), current };
  for (const name of missing) {
    const busy = isUtilization ? ((requests.get(name) ?? 0) * Math.max(100, goal)) / 100 : goal;
    if (ratio !== 1) used.set(name, ratio < 1 ? Math.trunc(busy) : 0);
  }
  if (growsWithUnready) for (const name of unready) used.set(name, 0);
  const damped = ratioOf(used);
  if (isWithin(damped) || (ratio < 1 && damped > 1) || (ratio > 1 && damped < 1)) return unchanged;
  const replicas = ceil(damped * used.size);
  // Counting unready pods and pods without a sample must not reverse the direction of the change.
  if (damped < 1 ? replicas > currentReplicas : replicas < currentReplicas) return unchanged;
  return { replicas, current };
}

/** Rounds up. Ratios are rounded quotients, whose products with integers may be slightly too large. */
function ceil(value: number): number {
  return Math.ceil(value - 1e-9);
}

function toleranceOf(rules: autoscalingV2.HPAScalingRules | undefined): number {
  return rules?.tolerance === undefined ? defaultTolerance : Number(quantityMilliValue(rules.tolerance)) / 1000;
}

async function readSamples(query: UsageQuery): Promise<Map<string, Sample>> {
  const { run, namespace, labelSelector, resource, container } = query;
  const prefix = `unable to get metrics for resource ${resource}`;
  const metrics = run.client.dynamic(metricsResource).namespace(namespace);
  const items = await metrics.list({ labelSelector, signal: run.signal }).then(
    (list) => list.items as PodMetrics[],
    (error) => {
      throw new Error(`${prefix}: unable to fetch metrics from resource metrics API: ${textOf(error)}`);
    },
  );
  if (items.length === 0) throw new Error(`${prefix}: no metrics returned from resource metrics API`);
  const samples = new Map<string, Sample>();
  for (const { metadata, containers = [], timestamp, window } of items) {
    const name = metadata?.name ?? '';
    const measured = container === undefined ? containers : containers.filter((other) => other.name === container);
    if (container !== undefined && measured.length === 0)
      throw new Error(`${prefix}: container ${container} not present in metrics for pod ${namespace}/${name}`);
    const values = measured.map(({ usage }) => usage?.[resource]);
    if (values.includes(undefined)) continue;
    const value = values.reduce((sum, text) => sum + Number(quantityMilliValue(text ?? '0')), 0);
    const windowMs = window === undefined ? 60_000 : Number(parseDuration(window)) / 1e6;
    samples.set(name, { value, timestamp: timeMs(timestamp ?? '') ?? 0, windowMs });
  }
  return samples;
}

/** Names of the pods whose samples are used, of those that are not ready, and of those without sample. */
function grouped(pods: readonly Pod[], samples: ReadonlyMap<string, Sample>, resource: string, now: number) {
  const groups = { ready: [] as string[], unready: [] as string[], missing: [] as string[] };
  for (const pod of pods) {
    const { name = '', deletionTimestamp } = pod.metadata ?? {};
    const { phase } = pod.status ?? {};
    if (deletionTimestamp !== undefined || phase === 'Failed') continue;
    const sample = samples.get(name);
    if (phase === 'Pending') groups.unready.push(name);
    else if (sample === undefined) groups.missing.push(name);
    else if (resource === 'cpu' && isStarting(pod, sample, now)) groups.unready.push(name);
    else groups.ready.push(name);
  }
  return groups;
}

function isStarting({ status }: Pod, { timestamp, windowMs }: Sample, now: number): boolean {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  const startedAt = timeMs(status?.startTime ?? '');
  if (ready === undefined || startedAt === undefined) return true;
  const changedAt = timeMs(ready.lastTransitionTime ?? '') ?? 0;
  if (startedAt + initializationMs > now) return ready.status === 'False' || timestamp < changedAt + windowMs;
  return ready.status === 'False' && startedAt + initialReadinessMs > changedAt;
}

/** Requests of the pods, or of one container, in thousandths. */
function requestsOf(pods: readonly Pod[], resource: string, container: string | undefined): Samples {
  const requests: Samples = new Map();
  for (const { metadata, spec } of pods) {
    const name = metadata?.name ?? '';
    const whole = container === undefined ? spec.resources?.requests : undefined;
    if (whole !== undefined && Object.keys(whole).length > 0) {
      if (whole[resource] === undefined) throw new Error(`missing pod-level request for ${resource} in Pod ${name}`);
      requests.set(name, Number(quantityMilliValue(whole[resource])));
      continue;
    }
    const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
    let sum = 0;
    for (const { name: of, resources } of [...spec.containers, ...sidecars]) {
      if (container !== undefined && container !== of) continue;
      const request = resources?.requests?.[resource];
      if (request === undefined) throw new Error(`missing request for ${resource} in container ${of} of Pod ${name}`);
      sum += Number(quantityMilliValue(request));
    }
    requests.set(name, sum);
  }
  return requests;
}

/** Percentage of the requests that is used. */
function utilization(values: Samples, requests: Samples): number {
  let [used, requested] = [0, 0];
  for (const [name, value] of values) {
    used += value;
    requested += requests.get(name) ?? 0;
  }
  if (requested === 0) throw new Error('no metrics returned matched known pods');
  return Math.trunc((used * 100) / requested);
}

function average(values: Samples): number {
  let sum = 0;
  for (const value of values.values()) sum += value;
  return Math.trunc(sum / values.size);
}

const binaryUnits = ['', 'Ki', 'Mi', 'Gi', 'Ti'];

function quantityOf(resource: string, thousandths: number): string {
  if (resource !== 'memory') return thousandths % 1000 === 0 ? `${thousandths / 1000}` : `${thousandths}m`;
  let value = Math.ceil(thousandths / 1000);
  let unit = 0;
  for (; value !== 0 && value % 1024 === 0 && unit < binaryUnits.length - 1; unit += 1) value /= 1024;
  return `${value}${binaryUnits[unit]}`;
}
