import { type Column, type KubeObject, type LabelSelectorSpec, labelSelectorOf, SelectorError } from '@keelson/core';
import { ageColumn, column, labelsText, nameColumn, wide } from '../columns/columns.ts';
import type { PodTemplateSpec } from '../core/v1/schema/index.ts';

interface Workload extends KubeObject {
  readonly spec: {
    readonly template: PodTemplateSpec;
    readonly selector?: LabelSelectorSpec;
    readonly replicas?: number;
  };
}

/** Columns about the containers of a workload, in wide output. */
const containerColumns: readonly Column<Workload>[] = [
  wide('Containers', 'string', 'Names of the containers.', ({ spec }) =>
    (spec.template?.spec?.containers ?? []).map(({ name }) => name).join(','),
  ),
  wide('Images', 'string', 'Images of the containers.', ({ spec }) =>
    (spec.template?.spec?.containers ?? []).map(({ image }) => image ?? '').join(','),
  ),
];

/** Columns about the pods of a workload, in wide output. */
export const podColumns: readonly Column<Workload>[] = [
  ...containerColumns,
  wide('Selector', 'string', 'Labels of the pods.', ({ spec }) => selectorText(spec.selector)),
];

/** A selector in the format of the command line. */
export function selectorText(selector: LabelSelectorSpec | undefined): string {
  if (!selector) return '<none>';
  try {
    return labelSelectorOf(selector).toString() || '<none>';
  } catch (error) {
    if (error instanceof SelectorError) return '<error>';
    throw error;
  }
}

interface DeploymentLike extends Workload {
  readonly status?: {
    readonly readyReplicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
  };
}

/** Columns of the table of deployments of all versions. */
export const deploymentColumns: readonly Column<DeploymentLike>[] = [
  nameColumn(),
  column(
    'Ready',
    'string',
    'Ready pods of those wanted.',
    ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec.replicas ?? 0}`,
  ),
  column('Up-to-date', 'string', 'Pods of the present template.', ({ status }) => status?.updatedReplicas ?? 0),
  column(
    'Available',
    'string',
    'Pods that have been ready long enough.',
    ({ status }) => status?.availableReplicas ?? 0,
  ),
  ageColumn,
  ...podColumns,
];

interface ReplicaSetLike extends Workload {
  readonly status?: { readonly replicas?: number; readonly readyReplicas?: number };
}

/** Columns of the table of replica sets of all versions. */
export const replicaSetColumns: readonly Column<ReplicaSetLike>[] = [
  nameColumn(),
  column('Desired', 'integer', 'Pods wanted.', ({ spec }) => spec.replicas ?? 0),
  column('Current', 'integer', 'Pods that are there.', ({ status }) => status?.replicas ?? 0),
  column('Ready', 'integer', 'Pods that are ready.', ({ status }) => status?.readyReplicas ?? 0),
  ageColumn,
  ...podColumns,
];

interface DaemonSetLike extends Workload {
  readonly status?: {
    readonly desiredNumberScheduled?: number;
    readonly currentNumberScheduled?: number;
    readonly numberReady?: number;
    readonly updatedNumberScheduled?: number;
    readonly numberAvailable?: number;
  };
}

/** Columns of the table of daemon sets of all versions. */
export const daemonSetColumns: readonly Column<DaemonSetLike>[] = [
  nameColumn(),
  column('Desired', 'integer', 'Nodes that should have a pod.', ({ status }) => status?.desiredNumberScheduled ?? 0),
  column('Current', 'integer', 'Nodes that have one.', ({ status }) => status?.currentNumberScheduled ?? 0),
  column('Ready', 'integer', 'Nodes whose pod is ready.', ({ status }) => status?.numberReady ?? 0),
  column(
    'Up-to-date',
    'integer',
    'Nodes whose pod is of the present template.',
    ({ status }) => status?.updatedNumberScheduled ?? 0,
  ),
  column(
    'Available',
    'integer',
    'Nodes whose pod has been ready long enough.',
    ({ status }) => status?.numberAvailable ?? 0,
  ),
  column('Node Selector', 'string', 'Labels of the nodes.', ({ spec }) =>
    labelsText(spec.template?.spec?.nodeSelector),
  ),
  ageColumn,
  ...podColumns,
];

interface StatefulSetLike extends Workload {
  readonly status?: { readonly readyReplicas?: number };
}

/** Columns of the table of stateful sets of all versions. */
export const statefulSetColumns: readonly Column<StatefulSetLike>[] = [
  nameColumn(),
  column(
    'Ready',
    'string',
    'Ready pods of those wanted.',
    ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec.replicas ?? 0}`,
  ),
  ageColumn,
  ...containerColumns,
];

/** Columns of the table of controller revisions of all versions. */
export const controllerRevisionColumns: readonly Column<KubeObject & { readonly revision?: number }>[] = [
  nameColumn(),
  column('Controller', 'string', 'Object that the revision belongs to.', controllerText),
  column('Revision', 'string', 'Number of the revision.', ({ revision }) => revision ?? 0),
  ageColumn,
];

/** The controlling owner as `statefulset.apps/web`. */
function controllerText({ metadata }: KubeObject): string {
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller);
  if (!owner) return '<none>';
  const slash = owner.apiVersion.indexOf('/');
  const group = slash < 0 ? '' : `.${owner.apiVersion.slice(0, slash)}`;
  const kind = `${owner.kind}${group}`.toLowerCase();
  return `${kind}/${owner.name}`;
}
