import assert from 'node:assert/strict';
import { defineKind, type KindDefinition, type KubeObject, optional, s } from '@keelson/core';
import type {
  ObjectPredicate,
  ReadPoint,
  Representation,
  ResourceStorage,
  SelectableAttributes,
  StoredList,
  StoredObject,
} from '@keelson/core/internal';
import type { Revision } from '@keelson/core/storage-adapter';

const spec = s.message('Spec', 'What the suite writes.', { text: optional(1, s.string(), 'Anything.') });
const schema = s.message('Thing', 'An object of the suite.', { spec: optional(2, spec, 'Contents.') });

export const podKind: KindDefinition = defineKind({ group: '', version: 'v1', kind: 'Pod', schema });
export const nodeKind: KindDefinition = defineKind({
  group: '',
  version: 'v1',
  kind: 'Node',
  scope: 'Cluster',
  schema,
});

export const podPrefix = '/core/pods/';
export const nodePrefix = '/core/nodes/';
export const latest: ReadPoint = { at: 'latest' };
export const any: ReadPoint = { at: 'any' };

export const exactly = (revision: Revision): ReadPoint => ({ at: 'exact', revision });
export const notOlderThan = (revision: Revision): ReadPoint => ({ at: 'notOlderThan', revision });

export interface ObjectText {
  readonly labels?: Readonly<Record<string, string>>;
  readonly text?: string;
}

/** Returns the canonical JSON of a pod, as it is stored. */
export function podJson(namespace: string, name: string, { labels, text = '' }: ObjectText = {}): Buffer {
  const metadata = { name, namespace, ...(labels ? { labels } : {}) };
  return Buffer.from(JSON.stringify({ kind: 'Pod', apiVersion: 'v1', metadata, spec: { text } }));
}

export function nodeJson(name: string, text = ''): Buffer {
  return Buffer.from(JSON.stringify({ kind: 'Node', apiVersion: 'v1', metadata: { name }, spec: { text } }));
}

export const podKey = (namespace: string, name: string): string => `${podPrefix}${namespace}/${name}`;
export const nodeKey = (name: string): string => `${nodePrefix}${name}`;

export function createPod(
  storage: ResourceStorage,
  namespace: string,
  name: string,
  contents?: ObjectText,
): Promise<StoredObject> {
  return storage.create(podKey(namespace, name), podJson(namespace, name, contents));
}

/** Writes a pod unconditionally. */
export async function putPod(
  storage: ResourceStorage,
  namespace: string,
  name: string,
  contents?: ObjectText,
): Promise<StoredObject> {
  const outcome = await storage.update(podKey(namespace, name), () => ({
    do: 'write',
    json: podJson(namespace, name, contents),
  }));
  return outcome.object;
}

export async function removePod(storage: ResourceStorage, namespace: string, name: string): Promise<StoredObject> {
  const outcome = await storage.update(podKey(namespace, name), () => ({ do: 'delete' }));
  assert.equal(outcome.outcome, 'deleted');
  return outcome.object;
}

export const everything: ObjectPredicate = { everything: true, id: '', matches: () => true };

const extract = (object: KubeObject): SelectableAttributes => ({
  labels: object.metadata?.labels ?? {},
  fields: new Map(),
});

export function labelled(name: string, value: string): ObjectPredicate {
  const read = (object: StoredObject) => object.selectable(extract).labels[name];
  return {
    everything: false,
    id: `${name}=${value}`,
    pin: { attribute: `label ${name}`, value, read },
    matches: (object) => read(object) === value,
  };
}

export function named(key: string): ObjectPredicate {
  return { everything: false, id: `key=${key}`, key, matches: (object) => object.key === key };
}

/** Selects objects by `spec.text`. */
export const texts: Representation = {
  id: 'text',
  encode: (object) => Buffer.from(JSON.stringify(textOf(object))),
};

export const stored: Representation = { id: 'stored', stored: true, encode: (object) => object.json };

export function textOf(object: StoredObject | undefined): string | undefined {
  return object?.value<KubeObject & { spec: { text: string } }>().spec.text;
}

/** Formats each object as `key text@revision`. */
export function shown(list: StoredList): string[] {
  return [...list.objects()].map((object) => `${object.key} ${textOf(object)}@${object.revision}`);
}

export function keysOf(list: StoredList): string[] {
  return [...list.objects()].map((object) => object.key);
}

export function names(list: StoredList): string[] {
  return keysOf(list).map((key) => key.slice(key.lastIndexOf('/') + 1));
}

/** Returns the bytes of a list. */
export function bodyOf(list: StoredList, representation: Representation = stored): string {
  return Buffer.concat([...list.chunks(representation, ',')]).toString();
}

/** Yields all pages of a list. */
export async function pagesOf(
  storage: ResourceStorage,
  prefix: string,
  limit: number,
  predicate: ObjectPredicate = everything,
  between: (page: StoredList) => Promise<void> = async () => {},
): Promise<StoredList[]> {
  const pages: StoredList[] = [];
  let page = await storage.list(prefix, { at: latest, predicate, limit });
  pages.push(page);
  while (page.next !== undefined) {
    await between(page);
    page = await storage.list(prefix, { at: latest, predicate, limit, resume: page.next });
    pages.push(page);
    assert.ok(pages.length < 10_000, 'the pages come to an end');
  }
  return pages;
}
