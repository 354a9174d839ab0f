import { always, filled, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';

const namespaceSpec = s.message('k8s.io.api.core.v1.NamespaceSpec', 'Intended state of a namespace.', {
  finalizers: optional(
    1,
    s.list(s.string(), { listType: 'atomic' }),
    'Parties that must finish before the namespace disappears.',
  ),
});
export interface NamespaceSpec extends Infer<typeof namespaceSpec> {}
export const NamespaceSpecSchema: Schema<NamespaceSpec> = namespaceSpec;

const namespaceCondition = s.message(
  'k8s.io.api.core.v1.NamespaceCondition',
  'One observed condition of a namespace, mostly of its deletion.',
  {
    type: always(1, s.string(), 'Type of the condition, e.g. NamespaceContentRemaining.'),
    status: always(2, s.string(), 'True, False or Unknown.'),
    lastTransitionTime: optional(4, s.time(), 'When status last changed.'),
    reason: optional(5, s.string(), 'Reason for the last transition, one CamelCase word.'),
    message: optional(6, s.string(), 'Human-readable message about the last change.'),
  },
);
export interface NamespaceCondition extends Infer<typeof namespaceCondition> {}
export const NamespaceConditionSchema: Schema<NamespaceCondition> = namespaceCondition;

const namespaceStatus = s.message('k8s.io.api.core.v1.NamespaceStatus', 'Observed state of a namespace.', {
  phase: optional(
    1,
    s.string({ values: ['Active', 'Terminating'] }),
    'Active, or Terminating while the content is being deleted.',
  ),
  conditions: optional(2, s.listByKey(NamespaceConditionSchema, 'type'), 'Latest observations.'),
});
export interface NamespaceStatus extends Infer<typeof namespaceStatus> {}
export const NamespaceStatusSchema: Schema<NamespaceStatus> = namespaceStatus;

const namespace = s.message(
  'k8s.io.api.core.v1.Namespace',
  'A scope for names: objects in different namespaces may share a name.',
  {
    spec: filled(2, NamespaceSpecSchema, 'Intended state.'),
    status: filled(3, NamespaceStatusSchema, 'Observed state.'),
  },
);
export interface Namespace extends KubeObject, Infer<typeof namespace> {}
export const NamespaceSchema: Schema<Namespace> = namespace;
