import { defineKind, type KindDefinition, type SelectableField } from '@keelson/core';
import { bindingSubresource } from './pod/binding.ts';
import { ephemeralContainersSubresource } from './pod/ephemeral-containers.ts';
import { evictionSubresource } from './pod/eviction.ts';
import { logSubresource } from './pod/log.ts';
import { podColumns, podRowConditions } from './pod/pod-columns.ts';
import { podStrategy } from './pod/pod-strategy.ts';
import { attachSubresource, execSubresource, podProxySubresource, portForwardSubresource } from './pod/streams.ts';
import { type Pod as PodObject, PodSchema } from './schema/index.ts';

const selectable: readonly SelectableField<PodObject>[] = [
  ['spec.nodeName', (pod) => pod.spec.nodeName ?? ''],
  ['spec.host', (pod) => pod.spec.nodeName ?? ''],
  ['spec.restartPolicy', (pod) => pod.spec.restartPolicy ?? ''],
  ['spec.schedulerName', (pod) => pod.spec.schedulerName ?? ''],
  ['spec.serviceAccountName', (pod) => pod.spec.serviceAccountName ?? ''],
  ['spec.hostNetwork', (pod) => String(pod.spec.hostNetwork ?? false)],
  ['status.phase', (pod) => pod.status?.phase ?? ''],
  ['status.podIP', (pod) => pod.status?.podIPs?.[0]?.ip ?? pod.status?.podIP ?? ''],
  ['status.podIPs', (pod) => (pod.status?.podIPs ?? []).map(({ ip }) => ip).join(',')],
  ['status.nominatedNodeName', (pod) => pod.status?.nominatedNodeName ?? ''],
];

/** Containers that run together on one node. */
export const Pod: KindDefinition<PodObject> = defineKind({
  group: '',
  version: 'v1',
  kind: 'Pod',
  names: { shortNames: ['po'], categories: ['all'] },
  schema: PodSchema,
  strategy: podStrategy,
  subresources: [
    { type: 'status', name: 'status' },
    bindingSubresource,
    ephemeralContainersSubresource,
    evictionSubresource,
    logSubresource,
    execSubresource,
    attachSubresource,
    portForwardSubresource,
    podProxySubresource,
  ],
  columns: podColumns,
  rowConditions: podRowConditions,
  selectableFields: selectable,
});
export type Pod = PodObject;
