import { fieldError, qualifiedNameErrors } from '@keelson/core';
import { type Errors, pushInvalid } from './checks.ts';
import { isNegativeAmount, isWholeQuantity } from './quantities.ts';

const containerResources = ['cpu', 'memory', 'ephemeral-storage'] as const;
const countedResources = [
  'configmaps',
  'persistentvolumeclaims',
  'pods',
  'replicationcontrollers',
  'resourcequotas',
  'secrets',
  'services',
  'services.loadbalancers',
  'services.nodeports',
] as const;

const counted: ReadonlySet<string> = new Set(countedResources);
const quotaResources: ReadonlySet<string> = new Set([
  ...containerResources,
  ...containerResources.flatMap((name) => [`requests.${name}`, `limits.${name}`]),
  'requests.storage',
  ...countedResources,
]);

/** Resources without a group, and those of the group kubernetes.io. */
function isNative(name: string): boolean {
  return !name.includes('/') || name.includes('kubernetes.io/');
}

/** Resources such as `hugepages-2Mi`. */
export function isHugePages(name: string): boolean {
  return name.startsWith('hugepages-');
}

/** Resources of devices, such as `example.com/gpu`. */
export function isExtendedResource(name: string): boolean {
  return !isNative(name) && !name.startsWith('requests.') && qualifiedNameErrors(`requests.${name}`).length === 0;
}

/** False for extended resources and huge pages, whose requests must equal the limits. */
export function allowsOvercommit(name: string): boolean {
  return isNative(name) && !isHugePages(name);
}

/** True for standard resources that a quota can limit. Qualified names can be limited as well. */
export function isQuotaResource(name: string): boolean {
  return quotaResources.has(name) || isHugePages(name) || name.startsWith('requests.hugepages-');
}

/** Rejects names that are neither a standard resource nor qualified; returns whether the name is a qualified one. */
export function checkResourceName(name: string, path: string, errors: Errors): boolean {
  const details = qualifiedNameErrors(name);
  pushInvalid(details, name, path, errors);
  if (details.length > 0 || name.includes('/')) return details.length === 0;
  if (isQuotaResource(name) || name === 'storage') return true;
  errors.push(fieldError.invalid(path, name, 'must be a standard resource type or fully qualified'));
  return false;
}

/** Validates the name of a resource that containers use. */
export function checkContainerResourceName(name: string, path: string, errors: Errors): void {
  checkResourceName(name, path, errors);
  if (name.includes('/')) {
    if (isNative(name) || isExtendedResource(name)) return;
    errors.push(fieldError.invalid(path, name, "doesn't follow extended resource name standard"));
  } else if (!(containerResources as readonly string[]).includes(name) && !isHugePages(name)) {
    errors.push(fieldError.invalid(path, name, 'must be a standard resource for containers'));
  }
}

/** Validates the name of a resource that a pod can have as a whole. */
export function checkPodResourceName(name: string, path: string, errors: Errors): void {
  const before = errors.length;
  checkResourceName(name, path, errors);
  if (errors.length > before || podResources.includes(name) || isHugePages(name)) return;
  errors.push(fieldError.notSupported(path, name, podResources));
}

const podResources = ['cpu', 'hugepages-', 'memory'];

/** Validates the name of a resource that a quota limits. */
export function checkQuotaResourceName(name: string, path: string, errors: Errors): void {
  checkResourceName(name, path, errors);
  if (!name.includes('/') && !isQuotaResource(name)) {
    errors.push(fieldError.invalid(path, name, 'must be a standard resource for quota'));
  }
}

/** Rejects negative amounts, and fractional amounts of resources that are counted in whole units. */
export function checkResourceAmount(name: string, amount: string, path: string, errors: Errors): void {
  if (isNegativeAmount(amount)) {
    errors.push(fieldError.invalid(path, amount, 'must be greater than or equal to 0'));
  }
  if ((counted.has(name) || isExtendedResource(name)) && !isWholeQuantity(amount)) {
    errors.push(fieldError.invalid(path, amount, 'must be an integer'));
  }
}
