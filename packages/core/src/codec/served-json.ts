import type { KindDefinition } from '../kind/kind-definition.ts';
import type { KubeObject } from '../meta/types.ts';
import type { Representation } from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { jsonHead, wireJson } from './object-codec.ts';
import { representationId } from './wire-form.ts';

/** The stored bytes as they are. */
export const storedJson: Representation = { id: 'json', stored: true, encode: (object) => object.json };

const representations = new WeakMap<KindDefinition, Representation>();

/**
 * The compact JSON of a kind's objects in the served version. For most kinds these are the stored bytes; a kind that
 * shares another's storage gets them with another head where that is the only difference, and converted where it is
 * not.
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

/** {@link servedJson} of one object, kept nowhere. */
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

/** A private parse in the served version. */
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
