import { fieldError, quantityValue } from '@keelson/core';
import { checkName, checkUnique, type Errors } from '../../../validation/checks.ts';
import { compareAmounts, unlessMalformed } from '../../../validation/quantities.ts';
import {
  allowsOvercommit,
  checkContainerResourceName,
  checkResourceAmount,
  isHugePages,
} from '../../../validation/resource-names.ts';
import type { ResourceRequirements } from '../schema/index.ts';

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
