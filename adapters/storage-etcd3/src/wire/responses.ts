import { WireReader } from '@keelson/protobuf-wire';

/** The header of every answer. */
export interface Header {
  /** Id of the etcd cluster as decimal digits, because a number cannot represent its 64 bits. */
  readonly clusterId: string;
  /** Revision of the etcd cluster at the time of the answer. */
  readonly revision: number;
}

export interface KeyValue {
  readonly key: Buffer;
  readonly createRevision: number;
  readonly modRevision: number;
  /** Number of puts since the key was created. */
  readonly version: number;
  readonly value: Buffer;
  /** The key has a lease. */
  readonly leased: boolean;
}

export interface RangeAnswer {
  readonly header: Header;
  readonly kvs: readonly KeyValue[];
  readonly more: boolean;
  readonly count: number;
}

export interface TxnAnswer {
  readonly header: Header;
  readonly succeeded: boolean;
  /** The entry that the executed branch has read. */
  readonly kv: KeyValue | undefined;
}

const noHeader: Header = { clusterId: '0', revision: 0 };
const empty: Buffer = Buffer.alloc(0);

/** The cluster id rarely changes; caching its text saves most of the cost of a header. */
let lastId = 0n;
let lastText = '0';

function clusterIdText(id: bigint): string {
  if (id !== lastId) {
    lastId = id;
    lastText = id.toString();
  }
  return lastText;
}

export function readHeader(reader: WireReader): Header {
  let clusterId = '0';
  let revision = 0;
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) clusterId = clusterIdText(reader.bigint());
    else if (field === 3) revision = reader.integer();
    else reader.skip();
  }
  return { clusterId, revision };
}

export function readKeyValue(reader: WireReader): KeyValue {
  let key: Buffer = empty;
  let createRevision = 0;
  let modRevision = 0;
  let version = 0;
  let value: Buffer = empty;
  let leased = false;
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) key = reader.bytes();
    else if (field === 2) createRevision = reader.integer();
    else if (field === 3) modRevision = reader.integer();
    else if (field === 4) version = reader.integer();
    else if (field === 5) value = reader.bytes();
    else if (field === 6) leased = reader.bigint() !== 0n;
    else reader.skip();
  }
  return { key, createRevision, modRevision, version, value, leased };
}

function readRange(reader: WireReader): RangeAnswer {
  let header = noHeader;
  const kvs: KeyValue[] = [];
  let more = false;
  let count = 0;
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 2) kvs.push(reader.within(readKeyValue));
    else if (field === 1) header = reader.within(readHeader);
    else if (field === 3) more = reader.integer() !== 0;
    else if (field === 4) count = reader.integer();
    else reader.skip();
  }
  return { header, kvs, more, count };
}

export function decodeRange(buffer: Buffer): RangeAnswer {
  return readRange(new WireReader(buffer));
}

/** Returns the first entry that a range within the transaction has read. */
function readOperation(reader: WireReader): KeyValue | undefined {
  let kv: KeyValue | undefined;
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) kv = reader.within(readRange).kvs[0];
    else reader.skip();
  }
  return kv;
}

export function decodeTxn(buffer: Buffer): TxnAnswer {
  const reader = new WireReader(buffer);
  let header = noHeader;
  let succeeded = false;
  let kv: KeyValue | undefined;
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) header = reader.within(readHeader);
    else if (field === 2) succeeded = reader.integer() !== 0;
    else if (field === 3) kv = reader.within(readOperation) ?? kv;
    else reader.skip();
  }
  return { header, succeeded, kv };
}

/** Decodes the header of an answer and skips everything else. */
export function decodeHeader(buffer: Buffer): { readonly header: Header } {
  const reader = new WireReader(buffer);
  let header = noHeader;
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) header = reader.within(readHeader);
    else reader.skip();
  }
  return { header };
}

export function decodeLease(buffer: Buffer): {
  readonly header: Header;
  readonly id: bigint;
  readonly ttlSeconds: number;
} {
  const reader = new WireReader(buffer);
  let header = noHeader;
  let id = 0n;
  let ttlSeconds = 0;
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) header = reader.within(readHeader);
    else if (field === 2) id = reader.bigint();
    else if (field === 3) ttlSeconds = reader.integer();
    else reader.skip();
  }
  return { header, id, ttlSeconds };
}

export function decodeStatus(buffer: Buffer): { readonly header: Header; readonly version: string } {
  const reader = new WireReader(buffer);
  let header = noHeader;
  let version = '';
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) header = reader.within(readHeader);
    else if (field === 2) version = reader.text();
    else reader.skip();
  }
  return { header, version };
}

/** The answer of `Authenticate`. */
export function decodeToken(buffer: Buffer): { readonly token: string } {
  const reader = new WireReader(buffer);
  let token = '';
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 2) token = reader.text();
    else reader.skip();
  }
  return { token };
}
