import type { KindDefinition, KubeObject } from '@keelson/core';
import { equalJson, storageKindOf } from '@keelson/core/internal';
import {
  builtinKinds,
  type coreV1,
  isExtendedResource,
  type PersistentVolumeClaim,
  type Pod,
  qosClassOf,
  type ResourceQuota,
  type Service,
} from '@keelson/kinds';
import { type Amounts, amountOf, podAmounts } from './amounts.ts';

/** The usage of quotas by objects of a kind. */
export interface UsageOfKind {
  /** True for the quota resources that objects of the kind use. */
  readonly counts: (resource: string) => boolean;
  readonly usageOf: (object: KubeObject, now: Date) => Amounts;
  /** The reason why an object lacks values that a quota on `resources` requires, or undefined. */
  readonly missing: (object: KubeObject, resources: readonly string[]) => string | undefined;
  /** True when an update of an existing object must be charged to quotas. */
  readonly charges: (object: KubeObject, old: KubeObject) => boolean;
  readonly inScope: (object: KubeObject, scope: Scope) => boolean;
}

type Scope = coreV1.ScopedResourceSelectorRequirement;

/** Resources that quotas also count under a name without the prefix `count/`. */
const aliases: Readonly<Record<string, string>> = {
  configmaps: 'configmaps',
  persistentvolumeclaims: 'persistentvolumeclaims',
  pods: 'pods',
  replicationcontrollers: 'replicationcontrollers',
  resourcequotas: 'resourcequotas',
  secrets: 'secrets',
  services: 'services',
};

/** Kinds that no quota counts. */
const ignored: ReadonlySet<string> = new Set(['events', 'events.events.k8s.io']);

/** `pods`, `deployments.apps`. */
function resourceName({ group, names }: KindDefinition): string {
  return group === '' ? names.plural : `${names.plural}.${group}`;
}

/** Names under which quotas count objects of a kind, including those of kinds that share its storage. */
function countNames(kind: KindDefinition): string[] {
  const stored = storageKindOf(kind);
  const twins = builtinKinds.filter((other) => storageKindOf(other) === stored);
  const names = [...new Set([resourceName(kind), ...twins.map(resourceName)])];
  return [...names.map((name) => `count/${name}`), ...names.flatMap((name) => aliases[name] ?? [])];
}

/** The usage rules for a kind; undefined for kinds that quotas do not count. */
export function usageOfKind(kind: KindDefinition): UsageOfKind | undefined {
  if (kind.scope !== 'Namespaced' || kind.virtual || ignored.has(resourceName(kind))) return undefined;
  const names = countNames(kind);
  const count: Amounts = Object.fromEntries(names.map((name) => [name, '1']));
  switch (resourceName(kind)) {
    case 'pods':
      return podUsage(count);
    case 'services':
      return serviceUsage(count);
    case 'persistentvolumeclaims':
      return claimUsage(count);
    default:
      return { ...plain, counts: (resource) => names.includes(resource), usageOf: () => count };
  }
}

const plain = { missing: () => undefined, charges: () => false, inScope: () => false };

/** The scopes of a quota as conditions. */
export function scopesOf({ spec }: ResourceQuota): readonly Scope[] {
  const named = (spec.scopes ?? []).map((scopeName) => ({ scopeName, operator: 'Exists' }));
  return [...named, ...(spec.scopeSelector?.matchExpressions ?? [])];
}

const computed = ['cpu', 'memory', 'ephemeral-storage'];
const podPrefixes = ['hugepages-', 'requests.hugepages-'];
const podResources: ReadonlySet<string> = new Set([
  'pods',
  ...computed.flatMap((name) => [name, `requests.${name}`, `limits.${name}`]),
]);
/** Every container must specify these resources when a quota limits them. */
const stated: ReadonlySet<string> = new Set(
  ['cpu', 'memory'].flatMap((name) => [name, `requests.${name}`, `limits.${name}`]),
);

function podUsage(count: Amounts): UsageOfKind {
  return {
    counts: (resource) =>
      podResources.has(resource) ||
      Object.hasOwn(count, resource) ||
      podPrefixes.some((prefix) => resource.startsWith(prefix)) ||
      (resource.startsWith('requests.') && isExtendedResource(resource.slice('requests.'.length))),
    usageOf: (object, now) => {
      const pod = object as Pod;
      const { pods: _, ...always } = count;
      if (hasEnded(pod, now)) return always;
      return { ...count, ...computeUsage(podAmounts(pod, 'requests', true), podAmounts(pod, 'limits', true)) };
    },
    missing: (object, resources) => missingAmounts(object as Pod, resources),
    charges: (object, old) =>
      isTerminating(object as Pod) !== isTerminating(old as Pod) || isResized(object as Pod, old as Pod),
    inScope: (object, scope) => podInScope(object as Pod, scope),
  };
}

function isResized({ spec }: Pod, { spec: old }: Pod): boolean {
  return (['containers', 'initContainers'] as const).some((list) =>
    spec[list]?.some(({ resources }, i) => !equalJson(resources, old[list]?.[i]?.resources)),
  );
}

/** Ended pods, and pods whose deletion is overdue, use no resources. */
function hasEnded({ metadata, status }: Pod, now: Date): boolean {
  if (status?.phase === 'Failed' || status?.phase === 'Succeeded') return true;
  const { deletionTimestamp, deletionGracePeriodSeconds } = metadata ?? {};
  if (!deletionTimestamp || deletionGracePeriodSeconds === undefined) return false;
  return now.getTime() > Date.parse(deletionTimestamp) + deletionGracePeriodSeconds * 1000;
}

function computeUsage(requests: Amounts, limits: Amounts): Amounts {
  const usage: Record<string, string> = {};
  for (const name of computed) {
    const request = amountOf(requests, name);
    const limit = amountOf(limits, name);
    if (request !== undefined) Object.assign(usage, { [name]: request, [`requests.${name}`]: request });
    if (limit !== undefined) usage[`limits.${name}`] = limit;
  }
  for (const [name, amount] of Object.entries(requests)) {
    if (name.startsWith('hugepages-')) Object.assign(usage, { [name]: amount, [`requests.${name}`]: amount });
    else if (isExtendedResource(name)) usage[`requests.${name}`] = amount;
  }
  return usage;
}

function missingAmounts({ spec }: Pod, resources: readonly string[]): string | undefined {
  if (spec.resources?.requests || spec.resources?.limits) return undefined;
  const missing = new Map<string, string[]>();
  for (const { name, resources: given } of [...spec.containers, ...(spec.initContainers ?? [])]) {
    const usage = computeUsage(given?.requests ?? {}, given?.limits ?? {});
    for (const resource of resources) {
      if (!stated.has(resource) || Object.hasOwn(usage, resource)) continue;
      missing.set(resource, [...(missing.get(resource) ?? []), name]);
    }
  }
  if (missing.size === 0) return undefined;
  const parts = [...missing].sort(([a], [b]) => (a < b ? -1 : 1));
  return `must specify ${parts.map(([resource, names]) => `${resource} for: ${names.sort().join(',')}`).join('; ')}`;
}

function isTerminating({ spec }: Pod): boolean {
  return spec.activeDeadlineSeconds !== undefined && spec.activeDeadlineSeconds >= 0;
}

function podInScope(pod: Pod, { scopeName, operator, values = [] }: Scope): boolean {
  switch (scopeName) {
    case 'Terminating':
      return isTerminating(pod);
    case 'NotTerminating':
      return !isTerminating(pod);
    case 'BestEffort':
      return qosClassOf(pod.spec) === 'BestEffort';
    case 'NotBestEffort':
      return qosClassOf(pod.spec) !== 'BestEffort';
    case 'PriorityClass':
      return isSelected(pod.spec.priorityClassName, operator, values);
    case 'CrossNamespacePodAffinity':
      return usesOtherNamespaces(pod);
    default:
      return false;
  }
}

function isSelected(value: string | undefined, operator: string, values: readonly string[]): boolean {
  switch (operator) {
    case 'In':
      return !!value && values.includes(value);
    case 'NotIn':
      return !value || !values.includes(value);
    case 'DoesNotExist':
      return !value;
    default:
      return !!value;
  }
}

function usesOtherNamespaces({ spec }: Pod): boolean {
  return [spec.affinity?.podAffinity, spec.affinity?.podAntiAffinity].some((affinity) => {
    const preferred = affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
    const terms = [
      ...(affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
      ...preferred.map(({ podAffinityTerm }) => podAffinityTerm),
    ];
    return terms.some(({ namespaces, namespaceSelector }) => !!namespaces?.length || namespaceSelector !== undefined);
  });
}

function serviceUsage(count: Amounts): UsageOfKind {
  const own = ['services.nodeports', 'services.loadbalancers'];
  return {
    ...plain,
    counts: (resource) => Object.hasOwn(count, resource) || own.includes(resource),
    charges: () => true,
    usageOf: (object) => {
      const { type, ports = [], allocateLoadBalancerNodePorts: allocates } = (object as Service).spec;
      const balanced = type === 'LoadBalancer';
      const given = ports.filter(({ nodePort }) => nodePort).length;
      const nodePorts = type === 'NodePort' || (balanced && allocates !== false) ? ports.length : balanced ? given : 0;
      return {
        ...count,
        'services.nodeports': String(nodePorts),
        'services.loadbalancers': balanced ? '1' : '0',
      };
    },
  };
}

const classSuffix = '.storageclass.storage.k8s.io/';
const claimResources = ['persistentvolumeclaims', 'requests.storage'];

function claimUsage(count: Amounts): UsageOfKind {
  return {
    ...plain,
    counts: (resource) =>
      Object.hasOwn(count, resource) ||
      claimResources.some((name) => resource === name || resource.endsWith(`${classSuffix}${name}`)),
    charges: () => true,
    usageOf: (object) => {
      const { metadata, spec } = object as PersistentVolumeClaim;
      const annotation = metadata?.annotations?.['volume.beta.kubernetes.io/storage-class'];
      const storageClass = annotation ?? spec.storageClassName ?? '';
      const size = amountOf(spec.resources?.requests, 'storage');
      return {
        ...count,
        ...(size === undefined ? {} : { 'requests.storage': size }),
        ...(storageClass === '' ? {} : { [`${storageClass}${classSuffix}persistentvolumeclaims`]: '1' }),
        ...(storageClass === '' || size === undefined
          ? {}
          : { [`${storageClass}${classSuffix}requests.storage`]: size }),
      };
    },
  };
}
