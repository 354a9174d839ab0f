import { isUtf8 } from 'node:buffer';
import type { Revision, WriteOp, WriteResult } from '@keelson/core/storage-adapter';
import { byteaArray, int8Array, textArray } from './binary-array.ts';
import type { Row } from './database.ts';
import { corrupt, entryOf, revisionOf } from './rows.ts';

/** Text is sent and stored unchanged; other bytes are sent as hexadecimal digits. */
function isText(value: Uint8Array): boolean {
  return isUtf8(value) && !value.includes(0);
}

/** The arguments of `apply` that describe the writes; at most one per key. */
export function encodeWrites(ops: readonly WriteOp[]): Buffer[] {
  const texts: (Uint8Array | undefined)[] = [];
  const bytes: (Uint8Array | undefined)[] = [];
  for (const op of ops) {
    const value = op.op === 'put' ? op.value : undefined;
    const text = value !== undefined && isText(value);
    texts.push(text ? value : undefined);
    bytes.push(text ? undefined : value);
  }
  return [
    textArray(ops.map((op) => Buffer.from(op.key))),
    int8Array(ops.map((op) => op.expect)),
    textArray(texts),
    byteaArray(bytes),
    int8Array(ops.map((op) => (op.op === 'put' && op.ttlMs !== undefined ? Math.ceil(op.ttlMs) : undefined))),
  ];
}

export interface BatchResult {
  /** Results of the writes, in the order of the writes. */
  readonly results: readonly WriteResult[];
  /** Revision of the store after the batch. */
  readonly head: Revision;
}

/** Decodes the answer of `apply`. */
export function decodeResults(ops: readonly WriteOp[], rows: readonly Row[]): BatchResult {
  const [first, ...refusals] = rows;
  const created = first?.[1]?.split(',');
  if (created?.length !== ops.length) throw corrupt('the answer does not match the batch of writes');
  const base = revisionOf(first?.[0]);
  const reasons = new Map(refusals.map((row) => [Number(row[2]), row]));
  let head = base;
  const results = ops.map((op, i): WriteResult => {
    const text = created[i];
    if (text !== '') {
      head++;
      const createRevision = revisionOf(text);
      return { ok: true, revision: head, createRevision: createRevision === 0 ? head : createRevision };
    }
    const row = reasons.get(i + 1);
    const [, , , createRevision, modRevision, expiresAt, value, bytes] = row ?? [];
    if (modRevision === null || modRevision === undefined) return { ok: false, current: undefined, revision: base };
    return {
      ok: false,
      current: entryOf({ key: op.key, createRevision, modRevision, expiresAt, text: value, bytes }),
      revision: base,
    };
  });
  return { results, head };
}
