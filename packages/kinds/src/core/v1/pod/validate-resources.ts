import { fieldError, qualifiedNameErrors } from '@keelson/core';
import { type Errors, pushInvalid } from '../../../validation/checks.ts';
import { compareAmounts, isNegativeAmount, isWholeQuantity } from '../../../validation/quantities.ts';
import type { ResourceRequirements } from '../schema/index.ts';

const standard = new Set(['cpu', 'memory', 'ephemeral-storage']);

/** Requests and limits of a container: known names, no negative amounts, no request above its limit. */
export function checkResources(
  resources: ResourceRequirements | undefined,
  podClaims: readonly { name: string }[] | undefined,
  path: string,
  errors: Errors,
): void {
  if (!resources) return;
  const limits = resources.limits ?? {};
  const requests = resources.requests ?? {};
  for (const [name, amount] of Object.entries(limits)) checkAmount(name, amount, `${path}.limits[${name}]`, errors);
  for (const [name, amount] of Object.entries(requests)) {
    checkAmount(name, amount, `${path}.requests[${name}]`, errors);
    const limit = Object.hasOwn(limits, name) ? limits[name] : undefined;
    checkAgainstLimit(name, amount, limit, `${path}.requests`, errors);
  }
  resources.claims?.forEach((claim, i) => {
    if (!podClaims?.some((known) => known.name === claim.name)) {
      errors.push(fieldError.notFound(`${path}.claims[${i}]`, claim.name));
    }
  });
}

/** Resources outside the standard set cannot be shared out beyond what there is. */
function isExtended(name: string): boolean {
  return name.includes('/') || name.startsWith('hugepages-');
}

function checkAgainstLimit(name: string, request: string, limit: string | undefined, path: string, errors: Errors): void {
  if (limit === undefined) {
    if (isExtended(name))
      errors.push(
        fieldError.required(
          `${path.slice(0, -'requests'.length)}limits`,
          `limit must be set for non overcommitable resource ${name}`,
        ),
      );
    return;
  }
  const order = compareAmounts(request, limit) ?? 0;
  if (isExtended(name) && order !== 0) {
    errors.push(fieldError.invalid(path, request, `must be equal to ${name} limit of ${limit}`));
  } else if (order > 0) {
    errors.push(fieldError.invalid(path, request, `must be less than or equal to ${name} limit of ${limit}`));
  }
}

/** One named amount; also for overheads and capacities. */
export function checkAmount(name: string, amount: string, path: string, errors: Errors): void {
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
