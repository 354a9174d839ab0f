import { statusErrors } from '../errors/status-error.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import { SelectorError } from '../meta/selector-error.ts';
import {
  type FieldSelector,
  fieldSelectorOf,
  type LabelSelector,
  parseFieldSelector,
  parseLabelSelector,
} from '../meta/selectors.ts';
import type { KubeObject } from '../meta/types.ts';
import type { ObjectPredicate, Pin } from '../storage/resource-storage.ts';
import { objectKey, storageKindOf, storedFieldOf } from '../storage/storage-key.ts';
import type { Key } from '../storage/store.ts';
import type { SelectableAttributes, StoredObject } from '../storage/stored-object.ts';
import type { SelectParameters, Target } from './resource-service.ts';

/** The selectors of a list or watch as a predicate and as a text. Equal texts select the same objects. */
export interface Selection {
  readonly predicate: ObjectPredicate;
  /** Canonical text of both selectors. */
  readonly text: string;
}

const extractors = new WeakMap<KindDefinition, (object: KubeObject) => SelectableAttributes>();

/**
 * Reads the labels and fields that selectors examine. Kinds that share storage share the function, because an object
 * caches the result of one function.
 */
function extractorOf(kind: KindDefinition): (object: KubeObject) => SelectableAttributes {
  const stored = storageKindOf(kind);
  let extract = extractors.get(stored);
  if (extract === undefined) {
    const fields = [...stored.selectableFields];
    extract = (object) => ({
      labels: object.metadata?.labels ?? {},
      fields: new Map(fields.map(([path, value]) => [path, value(object)])),
    });
    extractors.set(stored, extract);
  }
  return extract;
}

function parseSelector<T>(parse: (text: string) => T, text: string): T {
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof SelectorError) throw statusErrors.badRequest(error.message, error);
    throw error;
  }
}

function checkFieldNames(kind: KindDefinition, selector: FieldSelector): void {
  for (const { field } of selector.requirements) {
    if (kind.selectableFields.has(field)) continue;
    const generic = [...kind.selectableFields.keys()].every(
      (path) => path === 'metadata.name' || path === 'metadata.namespace',
    );
    throw statusErrors.badRequest(
      generic
        ? `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`
        : `field label not supported: ${field}`,
    );
  }
}

/** The value that the selector requires of a field with `=`, if any. */
function required(selector: FieldSelector, field: string): string | undefined {
  return selector.requirements.find((requirement) => requirement.field === field && requirement.operator === '=')
    ?.value;
}

/** The only key that can match, if there is one, and the remaining requirements of the selector. */
function onlyKey(
  kind: KindDefinition,
  namespace: string | undefined,
  fields: FieldSelector,
): { readonly key: Key; readonly rest: FieldSelector } | undefined {
  const name = required(fields, 'metadata.name');
  if (!name || name.includes('/') || name.includes('\0')) return undefined;
  const space = kind.scope === 'Cluster' ? undefined : (namespace ?? required(fields, 'metadata.namespace'));
  if (kind.scope !== 'Cluster' && (!space || space.includes('/'))) return undefined;
  const fixed = new Map([
    ['metadata.name', name],
    ['metadata.namespace', space ?? ''],
  ]);
  const rest = fields.requirements.filter(
    ({ field, operator, value }) => operator !== '=' || fixed.get(field) !== value,
  );
  return { key: objectKey(kind, space, name), rest: fieldSelectorOf(rest) };
}

/** The selector with the names that fields have in the storage version, in which selectors read objects. */
function inStorage(kind: KindDefinition, selector: FieldSelector): FieldSelector {
  return fieldSelectorOf(selector.requirements.map((one) => ({ ...one, field: storedFieldOf(kind, one.field) })));
}

/** The selector of a watch of one object. A metadata.name in the fieldSelector must be the name of the object. */
function withName(fields: FieldSelector, name: string): FieldSelector {
  const given = required(fields, 'metadata.name');
  if (given !== undefined && given !== name) {
    throw statusErrors.badRequest("fieldSelector metadata.name doesn't match requested name");
  }
  if (given === name) return fields;
  const escaped = name.replace(/[\\,=]/g, '\\$&');
  return parseSelector(
    parseFieldSelector,
    [`metadata.name=${escaped}`, ...(fields.empty ? [] : [fields.toString()])].join(','),
  );
}

/**
 * What the selectors of a request select: see docs/reference/api-rules.md#label-selectors and
 * docs/reference/api-rules.md#field-selectors.
 *
 * @throws StatusError 400 for selectors that cannot be read or name a field that the kind does not offer.
 */
export function selectionOf(
  kind: KindDefinition,
  target: Target,
  parameters: Pick<SelectParameters, 'labelSelector' | 'fieldSelector'>,
): Selection {
  const labels: LabelSelector = parseSelector(parseLabelSelector, parameters.labelSelector ?? '');
  const given = parseSelector(parseFieldSelector, parameters.fieldSelector ?? '');
  checkFieldNames(kind, given);
  const fields = inStorage(kind, target.name === undefined ? given : withName(given, target.name));
  if (labels.empty && fields.empty) return everything;

  const only = onlyKey(kind, kind.scope === 'Cluster' ? undefined : target.namespace, fields);
  const text = `${labels.toString()}\n${fields.toString()}`;
  if (only === undefined) {
    const pin = pinOf(kind, labels, fields);
    const predicate = { everything: false, id: text, ...(pin && { pin }), matches: matcher(kind, labels, fields) };
    return { text, predicate };
  }
  const { key, rest } = only;
  const restMatches = labels.empty && rest.empty ? () => true : matcher(kind, labels, rest);
  const matches = (object: StoredObject) => object.key === key && restMatches(object);
  return { text, predicate: { everything: false, id: text, key, matches } };
}

/**
 * A value that the selectors require with `=`. Fields are preferred to labels, because they are more selective, such as
 * the node of a pod.
 */
function pinOf(kind: KindDefinition, labels: LabelSelector, fields: FieldSelector): Pin | undefined {
  const extract = extractorOf(kind);
  const field = fields.requirements.find(({ operator }) => operator === '=');
  if (field !== undefined) {
    const path = field.field;
    const read = (object: StoredObject) => object.selectable(extract).fields.get(path) ?? '';
    return { attribute: `field ${path}`, value: field.value, read };
  }
  const label = labels.requirements.find(({ operator, values }) => operator === 'In' && values.length === 1);
  if (label === undefined) return undefined;
  const { key } = label;
  const read = (object: StoredObject) => {
    const found = object.selectable(extract).labels;
    return Object.hasOwn(found, key) ? found[key] : undefined;
  };
  return { attribute: `label ${key}`, value: label.values[0] as string, read };
}

/** Evaluates the selectors on the labels and fields of an object. */
function matcher(
  kind: KindDefinition,
  labels: LabelSelector,
  fields: FieldSelector,
): (object: StoredObject) => boolean {
  const extract = extractorOf(kind);
  return (object) => {
    const attributes = object.selectable(extract);
    return labels.matches(attributes.labels) && fields.matches((field) => attributes.fields.get(field) ?? '');
  };
}

const everything: Selection = { text: '', predicate: { everything: true, id: '', matches: () => true } };
