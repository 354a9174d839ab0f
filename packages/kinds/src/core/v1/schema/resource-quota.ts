import { always, embedded, filled, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';

const scopeNameSchema = s.string({
  values: [
    'BestEffort',
    'CrossNamespacePodAffinity',
    'NotBestEffort',
    'NotTerminating',
    'PriorityClass',
    'Terminating',
    'VolumeAttributesClass',
  ],
});

const scopedResourceSelectorRequirement = s.message(
  'k8s.io.api.core.v1.ScopedResourceSelectorRequirement',
  'One condition on the objects that a quota counts.',
  {
    scopeName: always(1, scopeNameSchema, 'Name of the scope.'),
    operator: always(
      2,
      s.string({ values: ['DoesNotExist', 'Exists', 'In', 'NotIn'] }),
      'In, NotIn, Exists or DoesNotExist.',
    ),
    values: optional(
      3,
      s.list(s.string(), { listType: 'atomic' }),
      'Values to compare with: some for In and NotIn, none otherwise.',
    ),
  },
);
export interface ScopedResourceSelectorRequirement extends Infer<typeof scopedResourceSelectorRequirement> {}
export const ScopedResourceSelectorRequirementSchema: Schema<ScopedResourceSelectorRequirement> =
  scopedResourceSelectorRequirement;

const scopeSelector = s.message(
  'k8s.io.api.core.v1.ScopeSelector',
  'Conditions that must all hold.',
  {
    matchExpressions: optional(
      1,
      s.list(ScopedResourceSelectorRequirementSchema, { listType: 'atomic' }),
      'The conditions.',
    ),
  },
  { mapType: 'atomic' },
);
export interface ScopeSelector extends Infer<typeof scopeSelector> {}
export const ScopeSelectorSchema: Schema<ScopeSelector> = scopeSelector;

const resourceQuotaSpec = s.message('k8s.io.api.core.v1.ResourceQuotaSpec', 'Intended limits of a namespace.', {
  hard: optional(1, s.map(s.quantity()), 'Limit of each resource.'),
  scopes: optional(
    2,
    s.list(scopeNameSchema, { listType: 'atomic' }),
    'Scopes that an object must fit to be counted; all objects without any.',
  ),
  scopeSelector: optional(3, ScopeSelectorSchema, 'Further conditions that an object must fit to be counted.'),
});
export interface ResourceQuotaSpec extends Infer<typeof resourceQuotaSpec> {}
export const ResourceQuotaSpecSchema: Schema<ResourceQuotaSpec> = resourceQuotaSpec;

const resourceQuotaStatus = s.message(
  'k8s.io.api.core.v1.ResourceQuotaStatus',
  'Enforced limits and their current use.',
  {
    hard: optional(1, s.map(s.quantity()), 'Limits that are enforced.'),
    used: optional(2, s.map(s.quantity()), 'Current use in the namespace.'),
  },
);
export interface ResourceQuotaStatus extends Infer<typeof resourceQuotaStatus> {}
export const ResourceQuotaStatusSchema: Schema<ResourceQuotaStatus> = resourceQuotaStatus;

const resourceQuota = s.message(
  'k8s.io.api.core.v1.ResourceQuota',
  'Limits what all objects of a namespace may use together.',
  {
    spec: embedded(2, ResourceQuotaSpecSchema, 'Intended limits.'),
    status: filled(3, ResourceQuotaStatusSchema, 'Enforced limits and their current use.'),
  },
);
export interface ResourceQuota extends KubeObject, Infer<typeof resourceQuota> {}
export const ResourceQuotaSchema: Schema<ResourceQuota> = resourceQuota;
