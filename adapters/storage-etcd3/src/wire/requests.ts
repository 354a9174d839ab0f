import { WireWriter } from '@keelson/protobuf-wire';

/** Keys include the prefix. Field numbers are those of etcd's `rpc.proto`. */
export interface RangeRequest {
  readonly key: Uint8Array;
  readonly end?: Uint8Array;
  readonly limit?: number;
  /** Revision to read; 0 or absent for a linearizable read of the current state. */
  readonly revision?: number;
  readonly keysOnly?: boolean;
  readonly countOnly?: boolean;
}

function range(request: RangeRequest): WireWriter {
  const writer = new WireWriter().bytes(1, request.key);
  if (request.end !== undefined) writer.bytes(2, request.end);
  return writer
    .integer(3, request.limit ?? 0)
    .integer(4, request.revision ?? 0)
    .flag(8, request.keysOnly === true)
    .flag(9, request.countOnly === true);
}

export function encodeRange(request: RangeRequest): Buffer {
  return range(request).finish();
}

const compareMod = 2;
const compareVersion = 0;

/** Compares the modRevision of the key; 0 means that the key does not exist. */
function modRevisionIs(key: Uint8Array, revision: number): WireWriter {
  return new WireWriter().integer(2, compareMod).bytes(3, key).integer(6, revision);
}

/** Compares the version of the key: the number of puts since its creation. */
function versionIs(key: Uint8Array, version: number): WireWriter {
  return new WireWriter().integer(2, compareVersion).bytes(3, key).integer(4, version);
}

interface Put {
  readonly key: Uint8Array;
  /** The parts of the value, in order. */
  readonly value: readonly Uint8Array[];
  readonly lease?: bigint | undefined;
}

function put({ key, value, lease }: Put): WireWriter {
  return new WireWriter().message(
    2,
    new WireWriter()
      .bytes(1, key)
      .bytes(2, ...value)
      .integer(3, lease ?? 0),
  );
}

function remove(key: Uint8Array): WireWriter {
  return new WireWriter().message(3, new WireWriter().bytes(1, key));
}

function read(key: Uint8Array, keysOnly: boolean): WireWriter {
  return new WireWriter().message(1, range({ key, keysOnly }));
}

function txn(compare: WireWriter | undefined, then: readonly WireWriter[], otherwise: readonly WireWriter[]): Buffer {
  const writer = new WireWriter();
  if (compare !== undefined) writer.message(1, compare);
  for (const op of then) writer.message(2, op);
  for (const op of otherwise) writer.message(3, op);
  return writer.finish();
}

/**
 * Puts when the modRevision of the key is `expect`. The answer of an update contains the createRevision, the answer of
 * a refused put the present entry.
 */
export function encodePutIf(expect: number, op: Put): Buffer {
  const then = expect === 0 ? [put(op)] : [put(op), read(op.key, true)];
  return txn(modRevisionIs(op.key, expect), then, [read(op.key, false)]);
}

/** Deletes when the modRevision of the key is `expect`, which must not be 0. */
export function encodeDeleteIf(expect: number, key: Uint8Array): Buffer {
  return txn(modRevisionIs(key, expect), [read(key, true), remove(key)], [read(key, false)]);
}

/** Puts unconditionally. */
export function encodePut(key: Uint8Array, value: Uint8Array): Buffer {
  return txn(undefined, [put({ key, value: [value] })], []);
}

/** Puts when the key has this version. */
export function encodePutIfVersion(version: number, key: Uint8Array, value: Uint8Array): Buffer {
  return txn(versionIs(key, version), [put({ key, value: [value] })], [read(key, false)]);
}

export function encodeCompaction(revision: number): Buffer {
  return new WireWriter().integer(1, revision).finish();
}

export function encodeLeaseGrant(ttlSeconds: number): Buffer {
  return new WireWriter().integer(1, ttlSeconds).finish();
}

export interface WatchCreate {
  readonly key: Uint8Array;
  readonly end: Uint8Array;
  /** First revision of the watch. */
  readonly start: number;
  readonly prevKv: boolean;
}

/** Allows fragments, and progress notifications of servers that are configured to send them. */
export function encodeWatchCreate({ key, end, start, prevKv }: WatchCreate): Buffer {
  const create = new WireWriter()
    .bytes(1, key)
    .bytes(2, end)
    .integer(3, start)
    .flag(4, true)
    .flag(6, prevKv)
    .flag(8, true);
  return new WireWriter().message(1, create).finish();
}

export function encodeProgressRequest(): Buffer {
  return new WireWriter().message(3, new WireWriter()).finish();
}

export function encodeAuthenticate(username: string, password: string): Buffer {
  return new WireWriter().bytes(1, Buffer.from(username)).bytes(2, Buffer.from(password)).finish();
}
