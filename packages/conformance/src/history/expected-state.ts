import type { FieldChanges, Fields, SeenObject, WriteOperation } from './records.ts';

/** The fields that clients set. */
export type ClientState = Pick<SeenObject, 'labels' | 'values' | 'status'>;

function merged(fields: Fields, changes: FieldChanges = {}): Fields {
  const result: Record<string, string> = { ...fields };
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete result[name];
    else result[name] = value;
  }
  return result;
}

/** Returns the result of a write. @param before undefined when there was no object */
export function stateAfter(
  op: Exclude<WriteOperation, { do: 'delete' }>,
  before: ClientState | undefined,
): ClientState {
  const { labels = {}, values = {}, status = {} } = before ?? {};
  switch (op.do) {
    case 'create':
      return { labels: op.labels, values: op.values, status: {} };
    case 'replace':
      return { labels: op.labels, values: op.values, status };
    case 'patch':
      return { labels: merged(labels, op.labels), values: merged(values, op.values), status };
    case 'status':
      return { labels, values, status: merged(status, op.status) };
  }
}

export function sameFields(a: Fields, b: Fields): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && a[name] === b[name]);
}

/** Returns the token of the write between two states; undefined when no token changed. */
export function tokenOf(after: ClientState, before: ClientState | undefined): string | undefined {
  const { values, status } = after;
  if (values['token'] !== before?.values['token']) return values['token'];
  if (status['token'] !== before?.status['token']) return status['token'];
  return undefined;
}
