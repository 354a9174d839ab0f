import { quantityMilliValue } from '@keelson/core';
import type { Container } from '@keelson/kinds';

const form = /^(limits|requests)\.(.+)$/;

/**
 * A request or limit in units of the divisor, rounded up; a limit that is not set is what the node can give. Undefined
 * when the reference names nothing that can be asked for.
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
