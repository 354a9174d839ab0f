import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { Key, Revision } from './store.ts';

const metadataStart = Buffer.from('"metadata":{');
const closingBrace = 0x7d;

/** Offset just behind `"metadata":{` in canonical JSON, where `"resourceVersion":"N",` belongs; -1 when absent. */
export function metadataOffset(value: Buffer): number {
  const at = value.indexOf(metadataStart);
  return at === -1 || at > 512 ? -1 : at + metadataStart.length;
}

/** Copies canonical JSON with `"resourceVersion":"<revision>"` put in as the first field of metadata. */
export function spliceResourceVersion(key: Key, value: Uint8Array, revision: Revision): Buffer {
  const out = trySplice(value, revision);
  if (out !== undefined) return out;
  throw new StorageError(StorageErrorCode.Corrupt, `stored object ${key} has no metadata`, { key, revision });
}

/** As {@link spliceResourceVersion}; undefined when there is no metadata. */
export function trySplice(value: Uint8Array, revision: Revision): Buffer | undefined {
  const source = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  const at = metadataOffset(source);
  return at === -1 ? undefined : replaceRange(source, at, at, insertion(source, at, revision));
}

/** The resourceVersion as it is put into `value` at its metadata's beginning `at`. */
export function insertion(value: Buffer, at: number, revision: Revision): string {
  return value[at] === closingBrace ? stampOf(revision) : `${stampOf(revision)},`;
}

/** A copy of wire JSON whose resourceVersion is `revision` instead of `old`. */
export function restampResourceVersion(json: Buffer, old: Revision, revision: Revision): Buffer {
  const at = metadataOffset(json);
  return replaceRange(json, at, at + stampOf(old).length, stampOf(revision));
}

/** True when `value` is what `json`, the wire JSON of `revision`, was spliced from. Copies nothing. */
export function isSplicedFrom(json: Buffer, revision: Revision, value: Buffer): boolean {
  const at = metadataOffset(value);
  if (at === -1) return false;
  const resume = at + stampOf(revision).length + (value[at] === closingBrace ? 0 : 1);
  return (
    json.length - resume === value.length - at &&
    json.compare(value, 0, at, 0, at) === 0 &&
    json.compare(value, at, value.length, resume, json.length) === 0
  );
}

function stampOf(revision: Revision): string {
  return `"resourceVersion":"${revision}"`;
}

function replaceRange(source: Buffer, start: number, end: number, text: string): Buffer {
  // Not from the shared pool: these bytes move into a block soon, and would leave the slab to whoever lives longer.
  const out = Buffer.allocUnsafeSlow(source.length - (end - start) + text.length);
  source.copy(out, 0, 0, start);
  out.write(text, start, 'latin1');
  source.copy(out, start + text.length, end);
  return out;
}
