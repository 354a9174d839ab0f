import { jsonText, parseJsonText } from '../json/json.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import type { KubeObject } from '../meta/types.ts';
import type { ObjectCodec, Representation } from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { representationId } from './wire-form.ts';

const headFields = ['kind', 'apiVersion', 'metadata'];

const codecs = new WeakMap<KindDefinition, ObjectCodec>();

/**
 * How objects of a kind are stored: as JSON that begins `{"kind":K,"apiVersion":V,"metadata":{` whatever the order of
 * the object's keys, and without metadata.resourceVersion, which storage inserts. The rest keeps the order of the
 * object, which the decoder has made canonical; so equal objects have equal bytes. metadata.selfLink is kept when it is
 * set.
 */
export function objectCodecOf(kind: KindDefinition): ObjectCodec {
  let codec = codecs.get(kind);
  if (codec === undefined) {
    codec = {
      encode: (object) => {
        if (isCanonical(kind, object)) return ownBytes(jsonText(object));
        const { resourceVersion: _, ...metadata } = object.metadata ?? {};
        return ownBytes(canonicalJson(kind, object, metadata));
      },
      decode: (json) => parseJsonText(json.toString('utf8')) as KubeObject,
    };
    codecs.set(kind, codec);
  }
  return codec;
}

/**
 * The same form with the resourceVersion at the position where storage inserts it, for responses that are created from
 * objects.
 */
export function wireJson(kind: KindDefinition, object: KubeObject): Buffer {
  const { resourceVersion, ...rest } = object.metadata ?? {};
  return Buffer.from(canonicalJson(kind, object, resourceVersion === undefined ? rest : { resourceVersion, ...rest }));
}

/** Beginning of every stored object of a kind, up to the comma before `"metadata"`. */
export function jsonHead(kind: { readonly kind: string; readonly apiVersion: string }): string {
  return `{"kind":${JSON.stringify(kind.kind)},"apiVersion":${JSON.stringify(kind.apiVersion)}`;
}

/**
 * True for an object that needs no rearrangement: new objects, as the decoder makes them. Saves a third of their
 * encoding.
 */
function isCanonical(kind: KindDefinition, object: KubeObject): boolean {
  if (object.kind !== kind.kind || object.apiVersion !== kind.apiVersion) return false;
  if (object.metadata === undefined || object.metadata.resourceVersion !== undefined) return false;
  let at = 0;
  for (const key in object) {
    if (key !== headFields[at]) return false;
    at += 1;
    if (at === headFields.length) return true;
  }
  return false;
}

/**
 * Bytes for long retention. They are not allocated from the shared pool, whose neighbouring data they would retain,
 * too.
 */
function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

/**
 * Concatenated from two texts. In a single object, properties with integer-like names, which open schemas allow, would
 * be written before `kind`.
 */
function canonicalJson(kind: KindDefinition, object: KubeObject, metadata: object): string {
  const { kind: _kind, apiVersion: _apiVersion, metadata: _metadata, ...rest } = object;
  const text = jsonText(rest);
  const tail = text === '{}' ? '}' : `,${text.slice(1)}`;
  return `${jsonHead(kind)},"metadata":${jsonText(metadata)}${tail}`;
}

/** The stored bytes, unchanged. */
export const storedJson: Representation = { id: 'json', stored: true, encode: (object) => object.json };

const representations = new WeakMap<KindDefinition, Representation>();

/**
 * The compact JSON of a kind's objects in the served version. For most kinds these are the stored bytes. For a kind
 * that shares the storage of another kind, `kind` and `apiVersion` are replaced in the bytes where nothing else
 * differs; otherwise the object is converted.
 */
export function servedJson(kind: KindDefinition): Representation {
  let representation = representations.get(kind);
  if (representation === undefined) {
    representation =
      kind.storage === undefined
        ? storedJson
        : {
            id: representationId(`json ${kind.apiVersion} ${kind.kind}`),
            encode: (object) => servedBytes(kind, object),
          };
    representations.set(kind, representation);
  }
  return representation;
}

/** The result of {@link servedJson} for one object; it is not cached. */
export function servedBytes(kind: KindDefinition, object: StoredObject): Buffer {
  const conversion = kind.storage;
  const json = object.json;
  if (conversion === undefined) return json;
  const relabelled = conversion.isRelabel(json) ? relabel(json, conversion.kind, kind) : undefined;
  return relabelled ?? wireJson(kind, conversion.fromStorage(object.value()));
}

/** A bookmark in the served version: it has no content that could be converted. */
export function servedBookmark(kind: KindDefinition, object: StoredObject): Buffer {
  const json = object.json;
  return (kind.storage && relabel(json, kind.storage.kind, kind)) ?? json;
}

/** A new parse in the served version, owned by the caller. */
export function servedValue(kind: KindDefinition, object: StoredObject): KubeObject {
  const value = object.value();
  return kind.storage === undefined ? value : kind.storage.fromStorage(value);
}

const heads = new WeakMap<KindDefinition, Buffer>();

function headOf(kind: KindDefinition): Buffer {
  let head = heads.get(kind);
  if (head === undefined) {
    head = Buffer.from(jsonHead(kind));
    heads.set(kind, head);
  }
  return head;
}

/**
 * A copy of canonical JSON with kind and apiVersion of another kind; undefined when it does not begin as `from` does.
 */
export function relabel(json: Buffer, from: KindDefinition, to: KindDefinition): Buffer | undefined {
  const old = headOf(from);
  if (json.length < old.length || old.compare(json, 0, old.length) !== 0) return undefined;
  const head = headOf(to);
  const out = Buffer.allocUnsafe(json.length - old.length + head.length);
  head.copy(out);
  json.copy(out, head.length, old.length);
  return out;
}
