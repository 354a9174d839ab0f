import type { Random } from '@keelson/conformance';

/** Values of wrong types, at limits, and with bytes that formats treat specially. */
const foreignValues: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  2 ** 31,
  2 ** 53 + 2,
  -(2 ** 63),
  1e308,
  '',
  ' ',
  'x'.repeat(300),
  '\u0000',
  '\u202e',
  '\ud800',
  '../../etc/passwd',
  '$(KEELSON)',
  '-1',
  '1Ei',
  '1e999',
  '2026-02-30T25:61:61Z',
  '__proto__',
  [],
  {},
  [[]],
  [null],
  [{}],
  { '': '' },
  { a: { b: { c: [] } } },
];

/** Names that are special in JavaScript; as data they mean nothing. */
export const specialNames = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '__defineGetter__',
] as const;

type Container = Record<string, unknown>;

function containers(value: unknown, found: Container[] = []): Container[] {
  if (typeof value !== 'object' || value === null) return found;
  found.push(value as Container);
  for (const child of Object.values(value)) containers(child, found);
  return found;
}

/** A copy of a document in which some values are replaced, removed, repeated or moved. */
export function mutateTree(random: Random, document: unknown): unknown {
  const copy = structuredClone(document);
  for (let changes = 1 + random.below(4); changes > 0; changes -= 1) {
    const all = containers(copy);
    const container = random.pick(all);
    const keys = Object.keys(container);
    const key = keys.length === 0 ? 'x' : random.pick(keys);
    const kind = random.below(7);
    if (kind <= 2) container[key] = structuredClone(random.pick(foreignValues));
    else if (kind === 3) delete container[key];
    else if (kind === 4) container[`${key}${random.below(10)}`] = structuredClone(random.pick(foreignValues));
    else if (kind === 5) container[key] = structuredClone(random.pick(all));
    else container[key] = nested(random.below(300));
  }
  return copy;
}

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

/** A copy of some bytes with flipped bits, cuts, insertions and repetitions. */
export function mutateBytes(random: Random, bytes: Buffer): Buffer {
  let result = Buffer.from(bytes);
  for (let changes = 1 + random.below(5); changes > 0; changes -= 1) {
    const at = random.below(result.length + 1);
    const kind = random.below(6);
    if (kind <= 1 && at < result.length) result[at] = (result[at] ?? 0) ^ (1 << random.below(8));
    else if (kind === 2) result = result.subarray(0, at);
    else if (kind === 3) {
      const inserted = Buffer.from(Array.from({ length: 1 + random.below(8) }, () => random.below(256)));
      result = Buffer.concat([result.subarray(0, at), inserted, result.subarray(at)]);
    } else if (kind === 4) {
      const end = at + random.below(result.length - at + 1);
      result = Buffer.concat([result.subarray(0, end), result.subarray(at)]);
    } else if (at < result.length) result[at] = random.pick([0, 0xff, 0x80, 0x7f, 0x22, 0x7b, 0x5b, 0x0a]);
  }
  return result;
}

/** A short text of characters that parsers of URLs, headers and selectors treat specially. */
export function hostileText(random: Random, length = 1 + random.below(12)): string {
  const characters = [
    ...'aZ09-._~%/\\?#&=+,;:!()[]{}<>|"\'`$*@^ \t',
    '%00',
    '%2f',
    '%2e%2e',
    '%',
    '%zz',
    '%c0%af',
    'é',
    '\u2028',
  ];
  return Array.from({ length }, () => random.pick(characters)).join('');
}
