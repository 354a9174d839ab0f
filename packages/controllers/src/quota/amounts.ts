import { addQuantities, compareQuantities } from '@keelson/core';
import type { Container, Pod } from '@keelson/kinds';

/** Amounts by resource, in canonical form. */
export type Amounts = Readonly<Record<string, string>>;

export function amountOf(amounts: Amounts | undefined, name: string): string | undefined {
  return amounts && Object.hasOwn(amounts, name) ? amounts[name] : undefined;
}

/** The sums of the amounts of two collections. */
export function addAmounts(a: Amounts, b: Amounts | undefined): Amounts {
  const result = { ...a };
  for (const [name, amount] of Object.entries(b ?? {})) {
    const known = amountOf(a, name);
    result[name] = known === undefined ? amount : addQuantities(known, amount);
  }
  return result;
}

/** The greater amount of each resource. */
export function maxAmounts(a: Amounts, b: Amounts): Amounts {
  const result = { ...a };
  for (const [name, amount] of Object.entries(b)) {
    const known = amountOf(a, name);
    if (known === undefined || compareQuantities(amount, known) > 0) result[name] = amount;
  }
  return result;
}

export function negated(amount: string): string {
  return amount.startsWith('-') ? amount.slice(1) : `-${amount}`;
}

/** The amounts of `a` that exceed those of `b`, by their difference. */
export function increases(a: Amounts, b: Amounts): Amounts {
  const result: Record<string, string> = {};
  for (const [name, amount] of Object.entries(a)) {
    const before = amountOf(b, name) ?? '0';
    if (compareQuantities(amount, before) > 0) result[name] = addQuantities(amount, negated(before));
  }
  return result;
}

const podLevelResources = ['cpu', 'memory'];

/**
 * The requests or limits of a pod: the sum over its containers, or the peak of its init containers if that is greater.
 * Pod-level amounts replace those of the containers.
 */
export function podAmounts({ spec }: Pod, field: 'requests' | 'limits', overhead = false): Amounts {
  const of = ({ resources }: Container): Amounts => resources?.[field] ?? {};
  let total: Amounts = {};
  for (const container of spec.containers) total = addAmounts(total, of(container));
  let sidecars: Amounts = {};
  let starting: Amounts = {};
  for (const container of spec.initContainers ?? []) {
    if (container.restartPolicy === 'Always') {
      total = addAmounts(total, of(container));
      sidecars = addAmounts(sidecars, of(container));
      starting = maxAmounts(starting, sidecars);
    } else starting = maxAmounts(starting, addAmounts(of(container), sidecars));
  }
  const result = { ...maxAmounts(total, starting) };
  for (const [name, amount] of Object.entries(spec.resources?.[field] ?? {})) {
    if (podLevelResources.includes(name)) result[name] = amount;
  }
  if (!overhead) return result;
  // Pod overhead is added to a limit only if a container has this limit, since a missing limit means unlimited.
  for (const [name, amount] of Object.entries(spec.overhead ?? {})) {
    const known = amountOf(result, name);
    if (known !== undefined) result[name] = addQuantities(known, amount);
    else if (field === 'requests') result[name] = amount;
  }
  return result;
}
