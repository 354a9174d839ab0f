import { addQuantities, fieldError } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { compareAmounts } from '../../../validation/quantities.ts';
import { allowsOvercommit, checkPodResourceName, isHugePages } from '../../../validation/resource-names.ts';
import type { PodSpec } from '../schema/index.ts';
import { checkClaims, checkRequirements } from './check-resources.ts';

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
