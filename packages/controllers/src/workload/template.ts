import type { PodTemplateSpec } from '@keelson/kinds';

/** Serialised templates. Templates from informers are shared and never change. */
const texts = new WeakMap<object, string>();

/** JSON with sorted keys: equal for equal values. */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value, bigints) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const fields = value as Record<string, unknown>;
  const parts: string[] = [];
  for (const key of Object.keys(fields).sort())
    if (fields[key] !== undefined) parts.push(`${JSON.stringify(key)}:${canonicalJson(fields[key])}`);
  return `{${parts.join(',')}}`;
}

/** Integers beyond 2^53 are bigints, which JSON.stringify does not support. They become strings. */
function bigints(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? `${value}` : value;
}

/** The value with the keys of all objects in ascending order, as encoders of Go write maps. */
export function withSortedKeys(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withSortedKeys);
  const fields = value as Record<string, unknown>;
  const names = Object.keys(fields).sort();
  return Object.fromEntries(names.map((name) => [name, withSortedKeys(fields[name])]));
}

export function sameJson(a: unknown, b: unknown): boolean {
  return a === b || canonicalJson(a) === canonicalJson(b);
}

/** The canonical JSON of a pod template without the hash label. */
export function templateText(template: PodTemplateSpec, hashLabel: string): string {
  let text = texts.get(template);
  if (text === undefined) {
    const { metadata = {}, spec } = template;
    const { creationTimestamp: _, labels = {}, ...rest } = metadata;
    const { [hashLabel]: __, ...others } = labels;
    text = canonicalJson({ metadata: { ...rest, labels: others }, spec });
    texts.set(template, text);
  }
  return text;
}

/** Characters of generated names. Without vowels and similar digits no words can appear. */
const characters = 'bcdfghjklmnpqrstvwxz2456789';

/**
 * A short name derived from a text: the decimal digits of its 32-bit FNV-1a hash, written in the characters of
 * generated names.
 */
export function shortHash(text: string): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return [...String(hash)].map((digit) => characters.charAt(digit.charCodeAt(0) % characters.length)).join('');
}
