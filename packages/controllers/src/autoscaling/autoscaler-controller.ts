// One file: one run of an autoscaler, whose steps share its conditions and metrics.
import { keyOf } from '@keelson/client';
import {
  type ControllerDefinition,
  patchStatus,
  type ReconcileResult,
  type ReconcileRun,
  relatedKind,
  withCondition,
} from '@keelson/controller-kit';
import {
  type GroupVersionResource,
  isStatusError,
  type LabelSelector,
  parseLabelSelector,
  StatusReason,
} from '@keelson/core';
import { type autoscalingV2, HorizontalPodAutoscaler, Pod, type Scale } from '@keelson/kinds';
import { timeOf } from '../workload/object-status.ts';
import { textOf } from '../workload/pod-writes.ts';
import { sameJson } from '../workload/template.ts';
import { recommendedReplicas } from './resource-usage.ts';
import { limitedReplicas, ScalingHistory } from './scaling-limits.ts';

const periodMs = 15_000;
const maxConflicts = 5;

type Spec = autoscalingV2.HorizontalPodAutoscalerSpec;
type Condition = Omit<autoscalingV2.HorizontalPodAutoscalerCondition, 'lastTransitionTime'>;

/** State of one autoscaler that is kept between runs. It is stored by the uid of the autoscaler. */
interface Memory {
  readonly key: string;
  readonly history: ScalingHistory;
  spec?: Spec;
  /** Monotonic time of the last run. */
  ranAt: number;
  /** The resource of the scale target, with the `scaleTargetRef` for which it was discovered. */
  target?: { readonly ref: Spec['scaleTargetRef']; readonly resource: GroupVersionResource };
  selector?: LabelSelector;
}

/** Changes the number of replicas of workloads depending on their resource usage. */
export const autoscalerController: ControllerDefinition<HorizontalPodAutoscaler> = createAutoscalerController();

function createAutoscalerController(): ControllerDefinition<HorizontalPodAutoscaler> {
  const memories = new Map<string, Memory>();
  return {
    name: 'horizontal-pod-autoscaler-controller',
    eventSource: 'horizontal-pod-autoscaler',
    kind: HorizontalPodAutoscaler,
    workers: 5,
    related: [relatedKind(Pod)],
    reconcile: async (autoscaler, run): Promise<ReconcileResult> => {
      const { uid = '' } = autoscaler.metadata ?? {};
      const now = run.clock.monotonic();
      const memory = memories.get(uid) ?? { key: run.key, history: new ScalingHistory(), ranAt: now - periodMs };
      memories.set(uid, memory);
      // The status update of a run triggers another run, which must wait until the period has passed.
      const waitMs = memory.ranAt + periodMs - now;
      if (waitMs > 0 && sameJson(memory.spec, autoscaler.spec)) return { againAfterMs: waitMs };
      memory.ranAt = now;
      memory.spec = autoscaler.spec;
      await new AutoscalerRun(autoscaler, run, memory, memories).scale();
      return { againAfterMs: periodMs };
    },
    deleted: async ({ key }) => {
      for (const [uid, memory] of memories) if (memory.key === key) memories.delete(uid);
      return undefined;
    },
  };
}

/** A reason to leave the number of replicas as it is, with the condition that states it. */
class ScalingError extends Error {
  readonly condition: Condition;
  constructor(condition: Condition, message: string) {
    super(message);
    this.condition = condition;
  }
}

class AutoscalerRun {
  readonly #autoscaler: HorizontalPodAutoscaler;
  readonly #run: ReconcileRun;
  readonly #memory: Memory;
  readonly #memories: ReadonlyMap<string, Memory>;
  readonly #namespace: string;
  #conditions: readonly autoscalingV2.HorizontalPodAutoscalerCondition[];
  readonly #metrics: autoscalingV2.MetricStatus[] = [];

  constructor(
    autoscaler: HorizontalPodAutoscaler,
    run: ReconcileRun,
    memory: Memory,
    memories: ReadonlyMap<string, Memory>,
  ) {
    this.#autoscaler = autoscaler;
    this.#run = run;
    this.#memory = memory;
    this.#memories = memories;
    this.#namespace = autoscaler.metadata?.namespace ?? '';
    this.#conditions = autoscaler.status?.conditions ?? [];
  }

  async scale(): Promise<void> {
    const { minReplicas = 1, maxReplicas } = this.#autoscaler.spec;
    let scale: Scale;
    try {
      scale = await this.#readScale();
    } catch (error) {
      if (this.#run.signal.aborted) return;
      const text = textOf(error);
      this.#event('Warning', 'FailedGetScale', text);
      const message = `the HPA controller was unable to get the target's current scale: ${text}`;
      this.#set({ type: 'AbleToScale', status: 'False', reason: 'FailedGetScale', message });
      await this.#write({});
      return;
    }
    this.#set({
      ...{ type: 'AbleToScale', status: 'True', reason: 'SucceededGetScale' },
      message: "the HPA controller was able to get the target's current scale",
    });
    const current = scale.spec?.replicas ?? 0;
    this.#memory.history.begin(current, this.#run.clock.monotonic());
    let desired = current;
    let reason = '';
    if (current === 0 && minReplicas !== 0) {
      const message = 'scaling is disabled since the replica count of the target is zero';
      this.#set({ type: 'ScalingActive', status: 'False', reason: 'ScalingDisabled', message });
    } else if (current > maxReplicas) {
      reason = 'Current number of replicas above Spec.MaxReplicas';
      desired = maxReplicas;
    } else if (current < minReplicas) {
      reason = 'Current number of replicas below Spec.MinReplicas';
      desired = minReplicas;
    } else {
      const found = await this.#recommend(scale, current);
      if (this.#run.signal.aborted) return;
      if (found === undefined) {
        await this.#write({ currentReplicas: current || undefined, currentMetrics: this.#metrics });
        return;
      }
      reason = found.replicas > current ? `${found.metric} above target` : 'All metrics below target';
      const { history } = this.#memory;
      const now = this.#run.clock.monotonic();
      const { spec } = this.#autoscaler;
      const limited = limitedReplicas({ spec, history, current, recommended: found.replicas, now });
      for (const condition of limited.conditions) this.#set(condition);
      desired = limited.replicas;
    }
    const isScaled = desired !== current;
    if (isScaled && !(await this.#rescale(scale, current, desired, reason))) return;
    await this.#write({
      currentReplicas: current || undefined,
      desiredReplicas: desired,
      currentMetrics: this.#metrics.length > 0 ? this.#metrics : undefined,
      ...(isScaled ? { lastScaleTime: timeOf(this.#run) } : {}),
    });
  }

  async #readScale(): Promise<Scale> {
    const { scaleTargetRef: ref } = this.#autoscaler.spec;
    if (this.#memory.target === undefined || !sameJson(this.#memory.target.ref, ref)) {
      const groupVersion = ref.apiVersion ?? '';
      const group = groupVersion.includes('/') ? groupVersion.slice(0, groupVersion.indexOf('/')) : '';
      const resources = await this.#run.client.discover();
      const matching = resources.filter((other) => other.kind === ref.kind && other.group === group);
      const resource = matching.find(({ version }) => groupVersion.endsWith(version)) ?? matching[0];
      if (resource === undefined) throw new Error(`no matches for kind "${ref.kind}" in group "${group}"`);
      this.#memory.target = { ref, resource };
    }
    const client = this.#run.client.dynamic(this.#memory.target.resource).namespace(this.#namespace);
    try {
      return (await client.getSubresource(ref.name, 'scale')) as Scale;
    } catch (error) {
      // The resource may have been replaced by another one, so the next run discovers it again.
      delete this.#memory.target;
      throw error;
    }
  }

  /** The highest number of replicas that a metric requires; undefined when failed metrics forbid scaling. */
  async #recommend(scale: Scale, current: number): Promise<{ replicas: number; metric: string } | undefined> {
    const { metrics = [] } = this.#autoscaler.spec;
    let best: { replicas: number; metric: string } | undefined;
    let invalid = 0;
    let first: ScalingError | undefined;
    try {
      const selector = this.#selector(scale);
      for (const metric of metrics) {
        try {
          const found = await this.#metric(metric, selector, current);
          if (best === undefined || found.replicas > best.replicas) best = found;
        } catch (error) {
          if (!(error instanceof ScalingError)) throw error;
          invalid += 1;
          first ??= error;
        }
      }
    } catch (error) {
      if (!(error instanceof ScalingError)) throw error;
      this.#set(error.condition);
      this.#event('Warning', 'FailedComputeMetricsReplicas', error.message);
      return undefined;
    }
    if (best === undefined || (first !== undefined && best.replicas < current)) {
      if (first === undefined || this.#run.signal.aborted) return undefined;
      this.#set(first.condition);
      const text = `invalid metrics (${invalid} invalid out of ${metrics.length}), first error is: ${first.message}`;
      this.#event('Warning', 'FailedComputeMetricsReplicas', text);
      return undefined;
    }
    const message = `the HPA was able to successfully calculate a replica count from ${best.metric}`;
    this.#set({ type: 'ScalingActive', status: 'True', reason: 'ValidMetricFound', message });
    return best;
  }

  #selector(scale: Scale): { text: string; labels: LabelSelector } {
    const fail = (reason: string, event: string, message: string, text = message) => {
      this.#event('Warning', event, text);
      return new ScalingError({ type: 'ScalingActive', status: 'False', reason, message }, text);
    };
    const text = scale.status?.selector ?? '';
    if (text === '') {
      const message = "the HPA target's scale is missing a selector";
      throw fail('InvalidSelector', 'SelectorRequired', message, 'selector is required');
    }
    let labels: LabelSelector;
    try {
      labels = parseLabelSelector(text);
    } catch (error) {
      const message = "couldn't convert selector into a corresponding internal selector object";
      throw fail('InvalidSelector', 'InvalidSelector', `${message}: ${textOf(error)}`);
    }
    this.#memory.selector = labels;
    const pods = this.#run
      .read(Pod)
      .inNamespace(this.#namespace)
      .filter(({ metadata }) => labels.matches(metadata?.labels));
    const selecting = this.#run
      .read(HorizontalPodAutoscaler)
      .inNamespace(this.#namespace)
      .filter(({ metadata }) => {
        const selector = this.#memories.get(metadata?.uid ?? '')?.selector;
        return pods.some((pod) => selector?.matches(pod.metadata?.labels));
      });
    if (selecting.length > 1) {
      const names = selecting.map(keyOf).join(' ');
      const message = `pods by selector ${text} are controlled by multiple HPAs: [${names}]`;
      throw fail('AmbiguousSelector', 'AmbiguousSelector', message);
    }
    return { text, labels };
  }

  async #metric(
    metric: autoscalingV2.MetricSpec,
    selector: { text: string; labels: LabelSelector },
    currentReplicas: number,
  ): Promise<{ replicas: number; metric: string }> {
    const { type, resource, containerResource } = metric;
    const source = type === 'Resource' ? resource : type === 'ContainerResource' ? containerResource : undefined;
    if (source === undefined) throw this.#unserved(metric);
    const { name, target } = source;
    const container = type === 'ContainerResource' ? containerResource?.container : undefined;
    const isUtilization = target.averageValue === undefined;
    try {
      const { replicas, current } = await recommendedReplicas({
        ...{ run: this.#run, namespace: this.#namespace, selector: selector.labels, labelSelector: selector.text },
        ...{ resource: name, target, behavior: this.#autoscaler.spec.behavior, currentReplicas },
        ...(container === undefined ? {} : { container }),
      });
      this.#metrics.push(
        container === undefined
          ? { type, resource: { name, current } }
          : { type, containerResource: { name, container, current } },
      );
      if (!isUtilization) return { replicas, metric: `${name} resource` };
      const of = container === undefined ? 'resource' : 'container resource';
      return { replicas, metric: `${name} ${of} utilization (percentage of request)` };
    } catch (error) {
      const text = `failed to get ${name} ${isUtilization ? 'utilization' : 'usage'}: ${textOf(error)}`;
      const what = container === undefined ? `${name} resource` : `${container} container`;
      throw this.#unable(`FailedGet${type}Metric`, text, `failed to get ${what} metric value: ${text}`);
    }
  }

  /** The error for metrics of the types Pods, Object and External: their metrics APIs are not supported. */
  #unserved({ type, pods, object, external }: autoscalingV2.MetricSpec): ScalingError {
    const name = (pods ?? object ?? external)?.metric.name ?? '';
    const api = type === 'External' ? 'external' : 'custom';
    const metric = type === 'External' ? `external metric ${this.#namespace}/${name}` : `metric ${name}`;
    const text =
      `unable to get ${metric}: unable to fetch metrics from ${api} metrics API: ` +
      `no ${api} metrics API (${api}.metrics.k8s.io) registered`;
    const what = type === 'External' ? `${name} external` : type.toLowerCase();
    return this.#unable(`FailedGet${type}Metric`, text, `failed to get ${what} metric value: ${text}`);
  }

  #unable(reason: string, text: string, error: string): ScalingError {
    if (!this.#run.signal.aborted) this.#event('Warning', reason, text);
    const message = `the HPA was unable to compute the replica count: ${text}`;
    return new ScalingError({ type: 'ScalingActive', status: 'False', reason, message }, error);
  }

  /** False when the number of replicas could not be written. */
  async #rescale(scale: Scale, current: number, desired: number, reason: string): Promise<boolean> {
    try {
      await this.#writeScale(scale, desired);
    } catch (error) {
      if (this.#run.signal.aborted) return false;
      const text = textOf(error);
      this.#event('Warning', 'FailedRescale', `New size: ${desired}; reason: ${reason}; error: ${text}`);
      const message = `the HPA controller was unable to update the target scale: ${text}`;
      this.#set({ type: 'AbleToScale', status: 'False', reason: 'FailedUpdateScale', message });
      await this.#write({ currentReplicas: current || undefined });
      return false;
    }
    const message = `the HPA controller was able to update the target scale to ${desired}`;
    this.#set({ type: 'AbleToScale', status: 'True', reason: 'SucceededRescale', message });
    this.#event('Normal', 'SuccessfulRescale', `New size: ${desired}; reason: ${reason}`);
    this.#memory.history.scaled(desired - current, this.#run.clock.monotonic());
    return true;
  }

  async #writeScale(scale: Scale, replicas: number): Promise<void> {
    const { name } = this.#autoscaler.spec.scaleTargetRef;
    const resource = this.#memory.target?.resource;
    if (resource === undefined) throw new Error('the scale target is not known');
    const client = this.#run.client.dynamic(resource).namespace(this.#namespace);
    for (let attempt = 1, latest = scale; ; attempt += 1) {
      try {
        await client.updateSubresource(name, 'scale', { ...latest, spec: { replicas } } as Scale);
        return;
      } catch (error) {
        if (!isStatusError(error, StatusReason.Conflict) || attempt === maxConflicts) throw error;
        latest = (await client.getSubresource(name, 'scale')) as Scale;
      }
    }
  }

  #set(condition: Condition): void {
    this.#conditions = withCondition(this.#conditions, condition, this.#run.clock);
  }

  #event(type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#run.event(this.#autoscaler, type, reason, message);
  }

  async #write(
    fields: {
      readonly [F in keyof autoscalingV2.HorizontalPodAutoscalerStatus]?:
        | autoscalingV2.HorizontalPodAutoscalerStatus[F]
        | undefined;
    },
  ): Promise<void> {
    const conditions = [...this.#conditions];
    await patchStatus(this.#run, HorizontalPodAutoscaler, this.#autoscaler, { ...fields, conditions });
  }
}
