import {
  type Column,
  defineKind,
  type KindDefinition,
  quantityMilliValue,
  quantityValue,
  type ReadVirtual,
  statusErrors,
} from '@keelson/core';
import { column, nameColumn } from '../../columns/columns.ts';
import {
  NodeMetricsSchema,
  type NodeMetrics as NodeMetricsType,
  PodMetricsSchema,
  type PodMetrics as PodMetricsType,
} from './schema.ts';

const group = 'metrics.k8s.io';
const version = 'v1beta1';

/** Used in processes that do not collect metrics from node agents. */
const unavailable = () => Promise.reject(statusErrors.serviceUnavailable('this server measures no nodes'));

/** Current use of resources by nodes; computed, never stored. */
export const NodeMetrics: KindDefinition<NodeMetricsType> = defineKind({
  group,
  version,
  kind: 'NodeMetrics',
  scope: 'Cluster',
  names: { plural: 'nodes' },
  schema: NodeMetricsSchema,
  columns: [nameColumn(), ...usageColumns(({ usage }: NodeMetricsType) => [usage]), windowColumn()],
  virtual: { read: unavailable },
});
export type NodeMetrics = NodeMetricsType;

/** Current use of resources by the containers of pods; computed, never stored. */
export const PodMetrics: KindDefinition<PodMetricsType> = defineKind({
  group,
  version,
  kind: 'PodMetrics',
  names: { plural: 'pods' },
  schema: PodMetricsSchema,
  columns: [
    nameColumn(),
    ...usageColumns(({ containers = [] }: PodMetricsType) => containers.map(({ usage }) => usage)),
    windowColumn(),
  ],
  virtual: { read: unavailable },
});
export type PodMetrics = PodMetricsType;

/** The kinds of the metrics API, read from functions of the server. */
export function metricsKinds(
  nodes: ReadVirtual<NodeMetricsType>,
  pods: ReadVirtual<PodMetricsType>,
): readonly KindDefinition[] {
  return [
    Object.freeze({ ...NodeMetrics, virtual: { read: nodes } }) as KindDefinition,
    Object.freeze({ ...PodMetrics, virtual: { read: pods } }) as KindDefinition,
  ];
}

type Usage = Readonly<Record<string, string>> | undefined;

function usageColumns<T>(usages: (object: T) => readonly Usage[]): Column<T>[] {
  const sum = (object: T, resource: string, read: (text: string) => bigint): bigint =>
    usages(object).reduce((total, usage) => total + read(usage?.[resource] ?? '0'), 0n);
  return [
    column('CPU', 'string', 'CPU in use.', (object: T) => `${sum(object, 'cpu', quantityMilliValue)}m`),
    column('Memory', 'string', 'Memory in use.', (object: T) => `${sum(object, 'memory', quantityValue) >> 20n}Mi`),
  ];
}

function windowColumn<T extends { window?: string }>(): Column<T> {
  return column('Window', 'string', 'Time over which the use of CPU is averaged.', ({ window }: T) => window ?? '');
}
