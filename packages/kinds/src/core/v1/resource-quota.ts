import { defineKind, type FieldError, fieldError, type KindDefinition } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { type Errors, newErrors, sameJson } from '../../validation/checks.ts';
import { checkQuotaResourceName, checkResourceAmount, isQuotaResource } from '../../validation/resource-names.ts';
import {
  ResourceQuotaSchema,
  type ResourceQuotaSpec,
  type ResourceQuota as ResourceQuotaType,
  type ScopedResourceSelectorRequirement,
} from './schema/index.ts';

const podResources: readonly string[] = [
  'pods',
  'cpu',
  'memory',
  'limits.cpu',
  'limits.memory',
  'requests.cpu',
  'requests.memory',
];

/** The standard resources that a quota with a scope can limit. Other qualified resources are permitted as well. */
const resourcesOfScope: Readonly<Record<string, readonly string[]>> = {
  Terminating: podResources,
  NotTerminating: podResources,
  NotBestEffort: podResources,
  PriorityClass: podResources,
  CrossNamespacePodAffinity: podResources,
  BestEffort: ['pods'],
  VolumeAttributesClass: ['persistentvolumeclaims', 'requests.storage'],
};

const exclusive = [
  ['BestEffort', 'NotBestEffort'],
  ['Terminating', 'NotTerminating'],
] as const;

/** Scopes without a value: an object either is in the scope or is not. */
const plainScopes: ReadonlySet<string> = new Set([
  'BestEffort',
  'NotBestEffort',
  'Terminating',
  'NotTerminating',
  'CrossNamespacePodAffinity',
]);

/** Limits what all objects of a namespace may use together. Admission charges new objects to its status. */
export const ResourceQuota: KindDefinition<ResourceQuotaType> = defineKind({
  group: '',
  version: 'v1',
  kind: 'ResourceQuota',
  names: { shortNames: ['quota'] },
  schema: ResourceQuotaSchema,
  strategy: {
    generation: 'none',
    deleteReturnsObject: true,
    validate: ({ spec }) => validateSpec(spec),
    validateUpdate({ spec }, { spec: old }) {
      const errors = newErrors();
      if (!sameJson(sorted(spec.scopes), sorted(old.scopes))) {
        errors.push(fieldError.invalid('spec.scopes', spec.scopes ?? null, 'field is immutable'));
      }
      return errors;
    },
    validateStatusUpdate({ status }) {
      const errors = newErrors();
      checkAmounts(status?.hard, 'status.hard', errors);
      checkAmounts(status?.used, 'status.used', errors);
      return errors;
    },
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns: [
    nameColumn(),
    column('Request', 'string', 'Used and permitted requests and numbers.', (quota: ResourceQuotaType) =>
      usageText(quota, false),
    ),
    column('Limit', 'string', 'Used and permitted limits.', (quota: ResourceQuotaType) => usageText(quota, true)),
    ageColumn,
  ],
});
export type ResourceQuota = ResourceQuotaType;

function sorted(scopes: readonly string[] | undefined): string[] {
  return [...new Set(scopes)].sort();
}

function usageText({ status }: ResourceQuotaType, limits: boolean): string {
  return Object.keys(status?.hard ?? {})
    .filter((name) => name.startsWith('limits.') === limits)
    .sort()
    .map((name) => `${name}: ${status?.used?.[name] ?? '0'}/${status?.hard?.[name]}`)
    .join(', ');
}

function checkAmounts(amounts: Record<string, string> | undefined, path: string, errors: Errors): void {
  for (const [name, amount] of Object.entries(amounts ?? {})) {
    checkQuotaResourceName(name, `${path}[${name}]`, errors);
    checkResourceAmount(name, amount, `${path}[${name}]`, errors);
  }
}

function validateSpec(spec: ResourceQuotaSpec): FieldError[] {
  const errors = newErrors();
  checkAmounts(spec.hard, 'spec.hard', errors);
  const standard = Object.keys(spec.hard ?? {}).filter(isQuotaResource);
  const { scopes = [], scopeSelector } = spec;
  for (const scope of scopes) {
    checkScope(scope, standard, { name: 'spec.scopes', list: 'spec.scopes', shownName: scopes, shown: scopes }, errors);
  }
  checkExclusive(scopes, scopes, 'spec.scopes', errors);
  const path = 'spec.scopeSelector.matchExpressions';
  const requirements = scopeSelector?.matchExpressions ?? [];
  for (const requirement of requirements) {
    const { scopeName } = requirement;
    const places = { name: `${path}.scopeName`, list: path, shownName: scopeName, shown: scopeSelector };
    checkScope(scopeName, standard, places, errors);
    checkRequirement(requirement, path, errors);
  }
  checkExclusive(
    requirements.map(({ scopeName }) => scopeName),
    scopes,
    path,
    errors,
  );
  return errors;
}

interface Places {
  readonly name: string;
  readonly list: string;
  readonly shownName: unknown;
  readonly shown: unknown;
}

function checkScope(scope: string, resources: readonly string[], places: Places, errors: Errors): void {
  const supported = Object.hasOwn(resourcesOfScope, scope) ? resourcesOfScope[scope] : undefined;
  if (supported === undefined) {
    errors.push(fieldError.invalid(places.name, places.shownName, 'unsupported scope'));
    return;
  }
  for (const name of resources) {
    if (supported.includes(name)) continue;
    errors.push(fieldError.invalid(places.list, places.shown, 'unsupported scope applied to resource'));
  }
}

function checkExclusive(scopes: readonly string[], shown: readonly string[], path: string, errors: Errors): void {
  for (const [a, b] of exclusive) {
    if (!scopes.includes(a) || !scopes.includes(b)) continue;
    errors.push(fieldError.invalid(path, shown.length > 0 ? shown : null, 'conflicting scopes'));
  }
}

function checkRequirement(requirement: ScopedResourceSelectorRequirement, path: string, errors: Errors): void {
  const { scopeName, operator, values = [] } = requirement;
  if (plainScopes.has(scopeName) && operator !== 'Exists') {
    const text =
      "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, " +
      'ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity';
    errors.push(fieldError.invalid(`${path}.operator`, operator, text));
  }
  switch (operator) {
    case 'In':
    case 'NotIn': {
      const text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
      if (values.length === 0) errors.push(fieldError.required(`${path}.values`, text));
      return;
    }
    case 'Exists':
    case 'DoesNotExist': {
      const text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
      if (values.length > 0) errors.push(fieldError.invalid(`${path}.values`, values, text));
      return;
    }
    default:
      errors.push(fieldError.invalid(`${path}.operator`, operator, 'not a valid selector operator'));
  }
}
