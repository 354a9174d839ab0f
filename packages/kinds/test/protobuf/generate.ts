import type { Field, Schema, SchemaNode } from '@keelson/core';

type AnyField = Field<unknown, boolean>;

/** Pseudo-random numbers in [0, 1) that a seed repeats. */
function randomOf(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const words = [
  'a',
  'x',
  'true',
  '0',
  'example.com/key',
  'Größe',
  '日本',
  '😀',
  '__proto__',
  'constructor',
  ' ',
  'a\nb',
  '\u0000',
  'x'.repeat(200),
];
const integers = [1, -1, 2, 127, 128, 300, 65_535, 2_147_483_647, -2_147_483_648];
const longs = [...integers, 2 ** 31, 2 ** 32, 2 ** 40 + 7, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER];
const quantities = ['1', '100m', '128Mi', '1k', '0', '-5', '1500m', '12e6', '0.5'];
const durations = ['0s', '1h30m0s', '-1.5s', '1ns', '2000h0m0s', '250ms'];

/**
 * An object as JSON clients send it: every field the schema has may be there, with a zero value only where Go types
 * would keep it. The seed repeats it; `size` is about the number of values in it.
 */
export function generateObject(schema: Schema<unknown>, seed: number, size: number): Record<string, unknown> {
  const random = randomOf(seed);
  let left = size;
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;

  function timeText(fraction: string): string {
    const seconds = Math.floor(random() * 4_000_000_000) - 1_000_000_000;
    return `${new Date(seconds * 1000).toISOString().slice(0, 19)}${fraction}Z`;
  }

  function value(node: SchemaNode, depth: number): unknown {
    left -= 1;
    switch (node.type) {
      case 'string':
        return node.enum ? pick(node.enum.filter((word) => word !== '')) : pick(words);
      case 'int32':
        return pick(integers);
      case 'int64':
        return pick(longs);
      case 'double':
        return pick([1.5, -0.25, 1e100]);
      case 'bool':
        return true;
      case 'bytes':
        return Buffer.from(pick(words)).toString('base64');
      case 'time':
        return timeText('');
      case 'microTime':
        return timeText(`.${String(Math.floor(random() * 1e6)).padStart(6, '0')}`);
      case 'duration':
        return pick(durations);
      case 'quantity':
        return pick(quantities);
      case 'intOrString':
        return random() < 0.5 ? pick(integers) : pick(words);
      case 'raw':
      case 'any':
        return { 'f:metadata': { 'f:labels': { '.': {}, 'f:a': [1, 'x', null, true] } } };
      case 'list':
        return Array.from({ length: 1 + Math.floor(random() * 3) }, () => value(node.items.node, depth + 1));
      case 'map':
        return Object.fromEntries(
          Array.from({ length: 1 + Math.floor(random() * 3) }, () => [pick(words), value(node.values.node, depth + 1)]),
        );
      case 'union': {
        const fields = node.message.node.type === 'message' ? Object.values(node.message.node.fields) : [];
        return value(pick(fields).schema.node, depth + 1);
      }
      case 'message':
        return message(node, depth);
    }
  }

  /** Zero values that both ways to write an object keep. */
  function zeroOf(field: AnyField): unknown {
    const keeps = field.presence === true || field.whenAbsent === 'zero';
    const node = field.schema.node;
    if (!keeps || (node.type === 'string' && node.enum !== undefined)) return undefined;
    switch (node.type) {
      case 'string':
      case 'bytes':
        return '';
      case 'int32':
      case 'int64':
      case 'double':
      case 'intOrString':
        return 0;
      case 'bool':
        return false;
      default:
        return undefined;
    }
  }

  function message(node: Extract<SchemaNode, { type: 'message' }>, depth: number): Record<string, unknown> {
    const out: Record<string, unknown> = {};
    const names = Object.keys(node.fields).sort(() => random() - 0.5);
    for (const name of names) {
      const field = node.fields[name]!;
      if (field.jsonOnly) continue;
      if (field.inline) {
        Object.assign(out, value(field.schema.node, depth));
        continue;
      }
      const wanted = name === 'metadata' && depth === 0;
      if (!wanted && (left <= 0 || random() > (depth < 2 ? 0.5 : 0.25))) continue;
      const zero = random() < 0.3 ? zeroOf(field) : undefined;
      out[name] = zero ?? value(field.schema.node, depth + 1);
    }
    return out;
  }

  return value(schema.node, 0) as Record<string, unknown>;
}
