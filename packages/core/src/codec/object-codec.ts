import type { KindDefinition } from '../kind/kind-definition.ts';
import type { KubeObject } from '../meta/types.ts';
import type { ObjectCodec } from '../storage/resource-storage.ts';
import { jsonText, parseJsonText } from './json-numbers.ts';

const headFields = ['kind', 'apiVersion', 'metadata'];

const codecs = new WeakMap<KindDefinition, ObjectCodec>();

/**
 * How objects of a kind are stored: as JSON that begins `{"kind":K,"apiVersion":V,"metadata":{` whatever the order of
 * the object's keys, and without metadata.resourceVersion, which storage puts in. The rest keeps the order of the
 * object, which the decoder has made canonical; so equal objects have equal bytes. metadata.selfLink is kept when
 * it is set.
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

/** The same form with the resourceVersion where storage puts it, for answers that are made from objects. */
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
 * Bytes that may be kept for long. They come from no shared pool, where they would keep their neighbours in memory too.
 */
function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

/** Written in two parts, because integer-like keys of open schemas would come before `kind` in an object of one. */
function canonicalJson(kind: KindDefinition, object: KubeObject, metadata: object): string {
  const { kind: _kind, apiVersion: _apiVersion, metadata: _metadata, ...rest } = object;
  const text = jsonText(rest);
  const tail = text === '{}' ? '}' : `,${text.slice(1)}`;
  return `${jsonHead(kind)},"metadata":${jsonText(metadata)}${tail}`;
}
