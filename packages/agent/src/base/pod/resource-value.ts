import { quantityMilliValue } from '@keelson/core';
import type { Container } from '@keelson/kinds';

const form = /^(limits|requests)\.(.+)$/;

/**
 * A resource request or limit in units of the divisor, rounded up. A limit that is not set is the allocatable amount of
 * the node. Undefined when the resource cannot be referenced.
 */
export function resourceValue(
  container: Container,
  resource: string,
  divisor: string | undefined,
  allocatable: Readonly<Record<string, string>>,
): string | undefined {
  const [, kind, name] = form.exec(resource) ?? [];
  if (kind === undefined || name === undefined) return undefined;
  const { limits = {}, requests = {} } = container.resources ?? {};
  const limit = positive(limits[name]) ?? allocatable[name] ?? '0';
  const amount = kind === 'limits' ? limit : (requests[name] ?? positive(limits[name]) ?? '0');
  const unit = positive(divisor) ?? '1';
  const value = quantityMilliValue(amount);
  const by = quantityMilliValue(unit);
  return String((value + by - 1n) / by);
}

function positive(amount: string | undefined): string | undefined {
  return amount !== undefined && quantityMilliValue(amount) > 0n ? amount : undefined;
}
