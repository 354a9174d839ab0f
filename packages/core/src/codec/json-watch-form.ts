import type { Status } from '../meta/status.ts';
import type { EventRepresentation, WatchEventType } from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { JsonShape } from './json-shape.ts';
import { type ListEnvelope, listHead } from './list-envelope.ts';
import { jsonMediaType } from './media-type.ts';
import { representationId } from './representation-id.ts';
import { type Framing, type JsonSource, jsonFrame } from './watch-frame.ts';
import type { EventPair, WatchForm } from './wire-form.ts';

type Body = (type: WatchEventType, object: StoredObject) => Buffer | JsonSource;

/**
 * Watch events of a shape. Frames are made once per event and shared, also those of tables: an age in a replayed frame
 * is that of the moment when somebody first asked for the frame.
 */
export function jsonWatchForm(shape: JsonShape): WatchForm {
  const { single } = shape;
  const errorFrame = (status: Status) => jsonFrame('ERROR', Buffer.from(JSON.stringify(status)), 'plain');
  const form = { contentType: jsonMediaType, errorFrame };
  if (single === undefined) return { ...form, ...pair(objectBody(shape)) };
  return { ...form, ...pair(envelopeBody(shape, single.next)), first: pair(envelopeBody(shape, single.first)) };
}

function objectBody(shape: JsonShape): Body {
  const { representation } = shape;
  // Stored bytes go into the frame directly.
  if (representation?.stored) return (_, object) => object;
  return (type, object) => {
    if (type === 'BOOKMARK') return shape.bookmark(object);
    return representation === undefined ? Buffer.from(shape.text(object)) : representation.encode(object);
  };
}

function envelopeBody(shape: JsonShape, envelope: ListEnvelope): Body {
  return (type, object) => {
    const head = listHead(envelope, { resourceVersion: resourceVersionOf(object) });
    const item = type === 'BOOKMARK' ? shape.bookmark(object).toString('utf8') : shape.text(object);
    return Buffer.from(`${head}${item}]}`);
  };
}

/** The object's own resourceVersion, which its revision is. */
function resourceVersionOf(object: StoredObject): string {
  return String(object.revision);
}

function pair(body: Body): EventPair {
  return { plain: representation(body, 'plain'), chunked: representation(body, 'chunked') };
}

function representation(body: Body, framing: Framing): EventRepresentation {
  return {
    id: representationId(`json event ${framing}`),
    encode: (type, object) => jsonFrame(type, body(type, object), framing),
  };
}
