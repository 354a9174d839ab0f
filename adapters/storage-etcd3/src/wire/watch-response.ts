import { WireReader } from '@keelson/protobuf-wire';
import { type Header, type KeyValue, readHeader, readKeyValue } from './responses.ts';

export interface WatchEvent {
  readonly deleted: boolean;
  readonly kv: KeyValue;
  readonly prev: KeyValue | undefined;
}

export interface WatchFrame {
  readonly header: Header;
  /** The frame belongs to the stream, not to a watch: the answer to a progress request. */
  readonly toStream: boolean;
  readonly created: boolean;
  readonly canceled: boolean;
  /** The compacted revision, when the watch was canceled because it starts below it. */
  readonly compactRevision: number;
  readonly cancelReason: string;
  /** More events of the same answer follow. */
  readonly fragment: boolean;
  readonly events: readonly WatchEvent[];
  /** Size of the message, in bytes; decides whether its parts are copied. */
  readonly sizeBytes: number;
}

const noHeader: Header = { clusterId: '0', revision: 0 };
const noKey: KeyValue = {
  key: Buffer.alloc(0),
  createRevision: 0,
  modRevision: 0,
  version: 0,
  value: Buffer.alloc(0),
  leased: false,
};

/** The id -1 in the encoding of etcd. */
const noWatch = 2n ** 64n - 1n;

function readEvent(reader: WireReader): WatchEvent {
  let deleted = false;
  let kv = noKey;
  let prev: KeyValue | undefined;
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) deleted = reader.integer() === 1;
    else if (field === 2) kv = reader.within(readKeyValue);
    else if (field === 3) prev = reader.within(readKeyValue);
    else reader.skip();
  }
  return { deleted, kv, prev };
}

export function decodeWatchFrame(buffer: Buffer): WatchFrame {
  const reader = new WireReader(buffer);
  let header = noHeader;
  let toStream = false;
  let created = false;
  let canceled = false;
  let compactRevision = 0;
  let cancelReason = '';
  let fragment = false;
  const events: WatchEvent[] = [];
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 11) events.push(reader.within(readEvent));
    else if (field === 1) header = reader.within(readHeader);
    else if (field === 2) toStream = reader.bigint() === noWatch;
    else if (field === 3) created = reader.integer() !== 0;
    else if (field === 4) canceled = reader.integer() !== 0;
    else if (field === 5) compactRevision = reader.integer();
    else if (field === 6) cancelReason = reader.text();
    else if (field === 7) fragment = reader.integer() !== 0;
    else reader.skip();
  }
  return {
    header,
    toStream,
    created,
    canceled,
    compactRevision,
    cancelReason,
    fragment,
    events,
    sizeBytes: buffer.length,
  };
}
