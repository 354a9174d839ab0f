import type { Column } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import type {
  HorizontalPodAutoscaler,
  MetricSpec,
  MetricStatus,
  MetricTarget,
  MetricValueStatus,
} from './schema/index.ts';

/** Columns of the table of horizontal pod autoscalers. */
export const autoscalerColumns: readonly Column<HorizontalPodAutoscaler>[] = [
  nameColumn(),
  column('Reference', 'string', 'Workload that is scaled.', ({ spec }) => {
    const { kind = '', name = '' } = spec.scaleTargetRef ?? {};
    return `${kind}/${name}`;
  }),
  column('Targets', 'string', 'Current and intended values of the metrics.', ({ spec, status }) =>
    targetsText(spec.metrics ?? [], status?.currentMetrics ?? []),
  ),
  column('MinPods', 'string', 'Least number of pods.', ({ spec }) => String(spec.minReplicas ?? '<unset>')),
  column('MaxPods', 'string', 'Greatest number of pods.', ({ spec }) => spec.maxReplicas ?? 0),
  column('Replicas', 'string', 'Number of pods.', ({ status }) => status?.currentReplicas ?? 0),
  ageColumn,
];

const maxShown = 2;

function targetsText(metrics: readonly MetricSpec[], statuses: readonly MetricStatus[]): string {
  if (metrics.length === 0) return '<none>';
  const shown = metrics.slice(0, maxShown).map((metric, i) => targetText(metric, statuses[i]));
  const more = metrics.length - shown.length;
  return more > 0 ? `${shown.join(', ')} + ${more} more...` : shown.join(', ');
}

function targetText(metric: MetricSpec, status: MetricStatus | undefined): string {
  switch (metric.type) {
    case 'External':
      return valueText(metric.external?.target, status?.external?.current);
    case 'Object':
      return valueText(metric.object?.target, status?.object?.current);
    case 'Pods':
      return `${status?.pods?.current.averageValue ?? '<unknown>'}/${metric.pods?.target.averageValue ?? '<unset>'}`;
    case 'Resource':
      return resourceText(metric.resource, status?.resource?.current);
    case 'ContainerResource':
      return resourceText(metric.containerResource, status?.containerResource?.current);
    default:
      return '<unknown type>';
  }
}

function valueText(target: MetricTarget | undefined, current: MetricValueStatus | undefined): string {
  return target?.averageValue === undefined
    ? `${current?.value ?? '<unknown>'}/${target?.value ?? '<unset>'}`
    : `${current?.averageValue ?? '<unknown>'}/${target.averageValue} (avg)`;
}

function resourceText(
  source: { readonly name: string; readonly target: MetricTarget } | undefined,
  current: MetricValueStatus | undefined,
): string {
  const { name = '', target } = source ?? {};
  if (target?.averageValue !== undefined) {
    return `${name}: ${current?.averageValue ?? '<unknown>'}/${target.averageValue}`;
  }
  const now = current?.averageUtilization === undefined ? '<unknown>' : `${current.averageUtilization}%`;
  const wanted = target?.averageUtilization === undefined ? '<auto>' : `${target.averageUtilization}%`;
  return `${name}: ${now}/${wanted}`;
}
