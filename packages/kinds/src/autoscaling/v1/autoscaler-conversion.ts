import type { KubeObject, Schema, StorageConversion } from '@keelson/core';
import { DecodeTypeError, decoderOf } from '@keelson/core/internal';
import { sameJson } from '../../validation/checks.ts';
import {
  autoscalerAnnotations as names,
  HorizontalPodAutoscaler as StoredKind,
} from '../v2/horizontal-pod-autoscaler.ts';
import * as v2 from '../v2/schema/index.ts';
import type { HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus } from './schema/index.ts';

/**
 * In autoscaling/v1 the only metric is the use of cpu. All other data is stored in annotations as JSON of
 * autoscaling/v2. A `null` in the annotated list of metrics marks the position of the cpu metric, unless it is the last
 * one.
 */
export const autoscalerConversion: StorageConversion<HorizontalPodAutoscaler> = {
  kind: StoredKind,
  toStorage(autoscaler) {
    const { targetCPUUtilizationPercentage: percentage, ...spec } = autoscaler.spec;
    const { currentCPUUtilizationPercentage: current, ...status } = autoscaler.status ?? emptyStatus();
    const kept = annotationsOf(autoscaler);
    const metrics: v2.MetricSpec[] = [];
    let placed = percentage === undefined;
    for (const metric of kept.metrics ?? []) {
      if (metric) metrics.push(metric);
      else if (percentage !== undefined && !placed) {
        metrics.push(cpuMetric(percentage));
        placed = true;
      }
    }
    if (percentage !== undefined && !placed) metrics.push(cpuMetric(percentage));
    const stored: v2.HorizontalPodAutoscaler = {
      ...autoscaler,
      apiVersion: StoredKind.apiVersion,
      kind: StoredKind.kind,
      metadata: { ...autoscaler.metadata },
      spec: { ...spec, metrics, ...(kept.behavior ? { behavior: kept.behavior } : {}) },
      status: {
        ...status,
        currentMetrics: kept.currentMetrics ?? (current === undefined ? [] : [cpuStatus(current)]),
        ...(kept.conditions ? { conditions: kept.conditions } : {}),
      },
    };
    setAnnotations(stored, {});
    return stored;
  },
  fromStorage(object) {
    const { spec, status, ...stored } = object as v2.HorizontalPodAutoscaler;
    const { metrics = [], behavior, ...shownSpec } = spec;
    const { currentMetrics = [], conditions, ...shownStatus } = status ?? emptyStatus();
    const percentage = metrics.map(cpuPercentage).find((value) => value !== undefined);
    const index = metrics.findIndex((metric) => cpuPercentage(metric) !== undefined);
    const others = metrics.map((metric, i) => (i === index ? null : metric));
    if (index === metrics.length - 1) others.splice(index, index < 0 ? 0 : 1);
    const current = currentMetrics.find(({ resource }) => resource?.name === 'cpu')?.resource?.current
      .averageUtilization;
    const plain = current === undefined ? [] : [cpuStatus(current)];
    const shown: HorizontalPodAutoscaler = {
      ...stored,
      apiVersion: 'autoscaling/v1',
      kind: 'HorizontalPodAutoscaler',
      metadata: { ...stored.metadata },
      spec: { ...shownSpec, ...(percentage === undefined ? {} : { targetCPUUtilizationPercentage: percentage }) },
      status: {
        ...shownStatus,
        currentReplicas: shownStatus.currentReplicas ?? 0,
        ...(current === undefined ? {} : { currentCPUUtilizationPercentage: current }),
      },
    };
    setAnnotations(shown, {
      metrics: others.length > 0 ? others : undefined,
      behavior,
      currentMetrics: sameJson(currentMetrics, plain) ? undefined : currentMetrics,
      conditions: conditions?.length ? conditions : undefined,
    });
    return shown;
  },
  isRelabel: () => false,
};

const emptyStatus = (): HorizontalPodAutoscalerStatus & v2.HorizontalPodAutoscalerStatus => ({
  currentReplicas: 0,
  desiredReplicas: 0,
});

function cpuMetric(averageUtilization: number): v2.MetricSpec {
  return { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } } };
}

function cpuStatus(averageUtilization: number): v2.MetricStatus {
  return { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization } } };
}

/** The target percentage of a cpu metric, or undefined for a metric that autoscaling/v1 cannot represent. */
function cpuPercentage(metric: v2.MetricSpec): number | undefined {
  const percentage = metric.resource?.target.averageUtilization;
  return percentage !== undefined && sameJson(metric, cpuMetric(percentage)) ? percentage : undefined;
}

interface Kept {
  readonly metrics?: readonly (v2.MetricSpec | null)[] | undefined;
  readonly behavior?: v2.HorizontalPodAutoscalerBehavior | undefined;
  readonly currentMetrics?: v2.MetricStatus[] | undefined;
  readonly conditions?: v2.HorizontalPodAutoscalerCondition[] | undefined;
}

/** The autoscaling/v2 values in the annotations. Values of a wrong type are omitted. */
function annotationsOf(object: KubeObject): Kept {
  const list = <T>(name: string, item: (value: unknown) => T | undefined): T[] | undefined => {
    const value = parsed(object, name);
    const items = Array.isArray(value) ? value.map(item) : [undefined];
    return items.includes(undefined) ? undefined : (items as T[]);
  };
  return {
    metrics: list(names.metrics, (value) => (value === null ? null : decoded(v2.MetricSpecSchema, value))),
    behavior: decoded(v2.HorizontalPodAutoscalerBehaviorSchema, parsed(object, names.behavior)),
    currentMetrics: list(names.currentMetrics, (value) => decoded(v2.MetricStatusSchema, value)),
    conditions: list(names.conditions, (value) => decoded(v2.HorizontalPodAutoscalerConditionSchema, value)),
  };
}

function parsed({ metadata }: KubeObject, name: string): unknown {
  const text = metadata?.annotations?.[name];
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function decoded<T>(schema: Schema<T>, value: unknown): T | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  try {
    const { value: object, errors } = decoderOf(schema)(value);
    return errors.length === 0 ? object : undefined;
  } catch (error) {
    if (error instanceof DecodeTypeError) return undefined;
    throw error;
  }
}

function setAnnotations(object: KubeObject, values: Kept): void {
  const metadata = object.metadata ?? {};
  const annotations = { ...metadata.annotations };
  for (const [field, name] of Object.entries(names)) {
    const value = values[field as keyof Kept];
    if (value === undefined) delete annotations[name];
    else annotations[name] = JSON.stringify(value);
  }
  if (Object.keys(annotations).length > 0) metadata.annotations = annotations;
  else delete metadata.annotations;
}
