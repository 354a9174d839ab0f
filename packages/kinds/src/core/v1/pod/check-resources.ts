import { fieldError, qualifiedNameErrors } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { pushInvalid } from '../../../validation/checks.ts';
import { compareAmounts, isNegativeAmount, isWholeQuantity } from '../../../validation/quantities.ts';
import type { ResourceRequirements } from '../schema/index.ts';

const standard = new Set(['cpu', 'memory', 'ephemeral-storage']);

/** Validates requests and limits: names, non-negative amounts, requests not above their limit. */
export function checkResources(
  resources: ResourceRequirements | undefined,
  podClaims: ReadonlySet<string>,
  path: string,
  errors: Errors,
): void {
  if (!resources) return;
  const limits = resources.limits ?? {};
  const requests = resources.requests ?? {};
  for (const [name, amount] of Object.entries(limits)) checkAmount(name, amount, `${path}.limits[${name}]`, errors);
  for (const [name, amount] of Object.entries(requests)) {
    checkAmount(name, amount, `${path}.requests[${name}]`, errors);
    if (Object.hasOwn(limits, name)) checkAgainstLimit(name, amount, limits[name] ?? '0', `${path}.requests`, errors);
    else if (isExtended(name)) {
      errors.push(fieldError.required(`${path}.limits`, 'Limit must be set for non overcommitable resources'));
    }
  }
  resources.claims?.forEach((claim, i) => {
    if (!podClaims.has(claim.name)) errors.push(fieldError.notFound(`${path}.claims[${i}]`, claim.name));
  });
}

/** True for extended resources and huge pages, which cannot be overcommitted. */
function isExtended(name: string): boolean {
  return name.includes('/') || name.startsWith('hugepages-');
}

function checkAgainstLimit(name: string, request: string, limit: string, path: string, errors: Errors): void {
  const order = compareAmounts(request, limit) ?? 0;
  if (isExtended(name) && order !== 0) {
    errors.push(fieldError.invalid(path, request, `must be equal to ${name} limit of ${limit}`));
  } else if (order > 0) {
    errors.push(fieldError.invalid(path, request, `must be less than or equal to ${name} limit of ${limit}`));
  }
}

/** One named amount. */
function checkAmount(name: string, amount: string, path: string, errors: Errors): void {
  pushInvalid(qualifiedNameErrors(name), name, path, errors);
  if (!name.includes('/') && !standard.has(name) && !name.startsWith('hugepages-')) {
    errors.push(fieldError.invalid(path, name, 'must be a standard resource for containers'));
  }
  if (isNegativeAmount(amount)) {
    errors.push(fieldError.invalid(path, amount, 'must be greater than or equal to 0'));
  } else if (isExtended(name) && !isWholeQuantity(amount)) {
    errors.push(fieldError.invalid(path, amount, 'must be an integer'));
  }
}
