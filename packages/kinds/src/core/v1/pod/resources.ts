// One file: resources of containers, of pods as a whole, and the class that follows from them.
import { addQuantities, fieldError, quantityValue } from '@keelson/core';
import { checkName, checkUnique, type Errors } from '../../../validation/checks.ts';
import { compareAmounts, unlessMalformed } from '../../../validation/quantities.ts';
import {
  allowsOvercommit,
  checkContainerResourceName,
  checkPodResourceName,
  checkResourceAmount,
  isHugePages,
} from '../../../validation/resource-names.ts';
import type { PodSpec, ResourceRequirements } from '../schema/index.ts';

type CheckName = (name: string, path: string, errors: Errors) => void;

/** Validates requests and limits of a container, and its references to claims of the pod. */
export function checkContainerResources(
  resources: ResourceRequirements | undefined,
  podClaims: ReadonlySet<string>,
  path: string,
  errors: Errors,
): void {
  if (!resources) return;
  checkRequirements(resources, checkContainerResourceName, path, errors);
  if (resources.claims) checkClaims(resources.claims, podClaims, `${path}.claims`, errors);
}

/** Validates requests and limits: names, non-negative amounts, requests not above their limit. */
export function checkRequirements(
  { limits = {}, requests = {} }: ResourceRequirements,
  check: CheckName,
  path: string,
  errors: Errors,
): void {
  const names: string[] = [];
  for (const name in limits) {
    names.push(name);
    checkAmount(name, limits[name] ?? '0', check, `${path}.limits[${name}]`, errors);
  }
  for (const name in requests) {
    names.push(name);
    const amount = requests[name] ?? '0';
    checkAmount(name, amount, check, `${path}.requests[${name}]`, errors);
    if (Object.hasOwn(limits, name)) checkAgainstLimit(name, amount, limits[name] ?? '0', `${path}.requests`, errors);
    else if (!allowsOvercommit(name)) {
      errors.push(fieldError.required(`${path}.limits`, 'Limit must be set for non overcommitable resources'));
    }
  }
  if (names.some(isHugePages) && !names.includes('cpu') && !names.includes('memory')) {
    errors.push(fieldError.forbidden(path, 'HugePages require cpu or memory'));
  }
}

function checkAgainstLimit(name: string, request: string, limit: string, path: string, errors: Errors): void {
  const order = compareAmounts(request, limit) ?? 0;
  if (!allowsOvercommit(name) && order !== 0) {
    errors.push(fieldError.invalid(path, request, `must be equal to ${name} limit of ${limit}`));
  } else if (order > 0) {
    errors.push(fieldError.invalid(path, request, `must be less than or equal to ${name} limit of ${limit}`));
  }
}

/** One named amount. Huge pages come in whole pages of the size in their name. */
function checkAmount(name: string, amount: string, check: CheckName, path: string, errors: Errors): void {
  check(name, path, errors);
  checkResourceAmount(name, amount, path, errors);
  if (!isHugePages(name)) return;
  const isWhole = unlessMalformed(() => {
    const size = quantityValue(name.slice('hugepages-'.length));
    return size > 0n && quantityValue(amount) % size === 0n;
  });
  if (!isWhole) errors.push(fieldError.invalid(path, amount, `${amount} is not positive integer multiple of ${name}`));
}

/** Validates references to the claims of the pod. */
export function checkClaims(
  claims: NonNullable<ResourceRequirements['claims']>,
  podClaims: ReadonlySet<string>,
  path: string,
  errors: Errors,
): void {
  const seen = new Set<string>();
  claims.forEach(({ name, request }, i) => {
    const at = `${path}[${i}]`;
    if (!name) {
      errors.push(fieldError.required(at));
      return;
    }
    if (seen.has(name)) errors.push(fieldError.duplicate(at, name));
    else {
      checkName(request, 'dns1123Label', `${at}.request`, errors);
      checkUnique(request ? `${name}/${request}` : name, seen, at, errors);
    }
    if (podClaims.has(name)) return;
    const known = podClaims.size === 0 ? ' which is empty' : `: ${[...podClaims].sort().join(', ')}`;
    const missing = fieldError.notFound(at, name);
    errors.push({
      ...missing,
      message: `${missing.message}: must be one of the names in pod.spec.resourceClaims${known}`,
    });
  });
}

type Amounts = Readonly<Record<string, string>>;

function isPodLevel(name: string): boolean {
  return name === 'cpu' || name === 'memory' || isHugePages(name);
}

/** Sets the amounts of a pod as a whole that follow from its containers and limits, if it has any of its own. */
export function defaultPodResources({ containers, initContainers, resources }: PodSpec): void {
  if (!resources) return;
  const { requests = {}, limits = {} } = resources;
  if (Object.keys(requests).length + Object.keys(limits).length === 0) return;
  const spec = { containers, ...(initContainers ? { initContainers } : {}) };
  for (const [name, amount] of Object.entries(containerAmounts(spec, 'limits'))) {
    if (isHugePages(name) && !Object.hasOwn(requests, name) && !Object.hasOwn(limits, name)) limits[name] = amount;
  }
  if (Object.keys(limits).length === 0) return;
  resources.limits = limits;
  const wanted = Object.entries(containerAmounts(spec, 'requests')).filter(([name]) => allowsOvercommit(name));
  for (const [name, amount] of [...wanted, ...Object.entries(limits)]) {
    if (isPodLevel(name) && !Object.hasOwn(requests, name)) requests[name] = amount;
  }
  if (Object.keys(requests).length > 0) resources.requests = requests;
}

/** What the containers need together: their sum, or the peak of the init containers if that is greater. */
function containerAmounts(spec: Pick<PodSpec, 'containers' | 'initContainers'>, field: 'requests' | 'limits'): Amounts {
  let total: Amounts = {};
  for (const { resources } of spec.containers ?? []) total = added(total, resources?.[field]);
  let sidecars: Amounts = {};
  let starting: Amounts = {};
  for (const { resources, restartPolicy } of spec.initContainers ?? []) {
    if (restartPolicy === 'Always') {
      total = added(total, resources?.[field]);
      sidecars = added(sidecars, resources?.[field]);
      starting = greater(starting, sidecars);
    } else starting = greater(starting, added(sidecars, resources?.[field]));
  }
  return greater(total, starting);
}

function combined(a: Amounts, b: Amounts | undefined, combine: (a: string, b: string) => string): Amounts {
  const result: Record<string, string> = { ...a };
  for (const [name, amount] of Object.entries(b ?? {})) {
    result[name] = Object.hasOwn(a, name) ? combine(a[name] ?? '0', amount) : amount;
  }
  return result;
}

const added = (a: Amounts, b: Amounts | undefined): Amounts => combined(a, b, addQuantities);
const greater = (a: Amounts, b: Amounts): Amounts =>
  combined(a, b, (x, y) => ((compareAmounts(x, y) ?? 0) < 0 ? y : x));

/** Validates the amounts of a pod as a whole, which its containers must fit into. */
export function checkPodResources(spec: PodSpec, path: string, errors: Errors): void {
  const { resources } = spec;
  if (!resources) return;
  if (spec.os?.name === 'windows') {
    errors.push(fieldError.forbidden(path, 'may not be set for a windows pod'));
    return;
  }
  if (resources.claims) {
    errors.push(fieldError.forbidden(`${path}.claims`, 'claims may not be set for Resources at pod-level'));
  }
  checkRequirements(resources, checkPodResourceName, path, errors);
  const podClaims = new Set((spec.resourceClaims ?? []).map(({ name }) => name));
  if (resources.claims) checkClaims(resources.claims, podClaims, `${path}.claims`, errors);
  const { requests = {}, limits = {} } = resources;
  for (const [name, amount] of Object.entries(containerAmounts(spec, 'requests'))) {
    checkTotal(name, amount, requests, 'requests', path, errors);
  }
  for (const [name, amount] of Object.entries(containerAmounts(spec, 'limits'))) {
    if (isHugePages(name)) checkTotal(name, amount, limits, 'limits', path, errors);
  }
  spec.containers?.forEach((container, i) => {
    for (const [name, limit] of Object.entries(container.resources?.limits ?? {})) {
      if (!Object.hasOwn(limits, name) || (compareAmounts(limit, limits[name] ?? '0') ?? 0) <= 0) continue;
      // Kubernetes names the containers below the resources.
      const at = `${path}.containers[${i}][${name}].limits`;
      errors.push(fieldError.invalid(at, limit, `must be less than or equal to pod limits of ${limits[name]}`));
    }
  });
}

function checkTotal(
  name: string,
  needed: string,
  amounts: Amounts,
  field: 'requests' | 'limits',
  path: string,
  errors: Errors,
): void {
  if (!Object.hasOwn(amounts, name) || (compareAmounts(needed, amounts[name] ?? '0') ?? 0) <= 0) return;
  const detail = `must be greater than or equal to aggregate container ${field} of ${needed}`;
  errors.push(fieldError.invalid(`${path}.${field}[${name}]`, amounts[name], detail));
}

/** Quality of service class of a pod, which determines the order of eviction. */
export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

const counted = ['cpu', 'memory'] as const;

/**
 * Guaranteed: every container has limits for cpu and memory, and equal requests. BestEffort: no container has requests
 * or limits. Burstable: all other pods. Zero amounts count as absent. The resources of a pod as a whole count in place
 * of those of its containers.
 */
export function qosClassOf(spec: PodSpec): QosClass {
  if (spec.resources) return classOf([spec.resources]);
  const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  return classOf(containers.map(({ resources }) => resources));
}

function classOf(all: readonly (ResourceRequirements | undefined)[]): QosClass {
  let asks = false;
  let guaranteed = true;
  for (const resources of all) {
    for (const name of counted) {
      const request = positive(resources?.requests?.[name]);
      const limit = positive(resources?.limits?.[name]);
      if (request !== undefined || limit !== undefined) asks = true;
      if (limit === undefined || compareAmounts(request ?? limit, limit) !== 0) guaranteed = false;
    }
  }
  if (!asks) return 'BestEffort';
  return guaranteed ? 'Guaranteed' : 'Burstable';
}

function positive(amount: string | undefined): string | undefined {
  return amount !== undefined && (compareAmounts(amount, '0') ?? 0) > 0 ? amount : undefined;
}
