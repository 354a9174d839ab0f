import { kindOfKey, type LabelTerm, type SeenObject, type Selection } from './records.ts';

type Selectable = Pick<SeenObject, 'key' | 'labels' | 'values'>;

function holds(term: LabelTerm, labels: SeenObject['labels']): boolean {
  const value = labels[term.key];
  switch (term.is) {
    case 'there':
      return value !== undefined;
    case 'absent':
      return value === undefined;
    case 'in':
      return value !== undefined && term.values.includes(value);
    case 'notIn':
      return value === undefined || !term.values.includes(value);
  }
}

/** Returns whether a selection matches an object in this state. Deliberately independent of the server's selectors. */
export function selects(selection: Selection, object: Selectable): boolean {
  const { kind, namespace, labels = [], name, value } = selection;
  const [, objectNamespace, objectName] = object.key.split('/');
  return (
    kindOfKey(object.key) === kind &&
    (namespace === undefined || namespace === objectNamespace) &&
    (name === undefined || name === objectName) &&
    (value === undefined || (object.values[value.field] ?? '') === value.is) &&
    labels.every((term) => holds(term, object.labels))
  );
}

/** Returns true when only the kind restricts the selection. */
export function isWholeKind({ namespace, labels, name, value }: Selection): boolean {
  return namespace === undefined && name === undefined && value === undefined && (labels ?? []).length === 0;
}

/** Formats labels in the grammar of `labelSelector`; empty means all objects. */
export function labelSelectorText({ labels = [] }: Selection): string {
  return labels
    .map((term) => {
      if ('values' in term) return `${term.key} ${term.is === 'in' ? 'in' : 'notin'} (${term.values.join(',')})`;
      return term.is === 'there' ? term.key : `!${term.key}`;
    })
    .join(',');
}
