import type { ReadAt, Selection, WriteOperation } from '../records.ts';
import { labelSelectorText } from '../selection.ts';
import { type WorkloadKind, workloadKinds } from './workload-kinds.ts';

/** Objects with other names belong to the server itself; histories omit them. */
export const namePrefix = 'w-';

export function kindNamed(name: string): WorkloadKind {
  const found = workloadKinds.find(({ kind }) => kind === name);
  if (found === undefined) throw new Error(`no kind ${name} in the workload`);
  return found;
}

/** Returns the path of a collection, with the selection as query parameters. */
export function collectionPath(selection: Selection, parameters: Readonly<Record<string, string>>): string {
  const { root, plural, selectable } = kindNamed(selection.kind);
  const place = selection.namespace === undefined ? plural : `namespaces/${selection.namespace}/${plural}`;
  const query = new URLSearchParams(parameters);
  const labels = labelSelectorText(selection);
  if (labels !== '') query.set('labelSelector', labels);
  const fields = [
    ...(selection.name === undefined ? [] : [`metadata.name=${selection.name}`]),
    ...(selection.value === undefined ? [] : [`${selectable?.path}=${selection.value.is}`]),
  ];
  if (fields.length > 0) query.set('fieldSelector', fields.join(','));
  const text = query.toString();
  return `${root}/${place}${text === '' ? '' : `?${text}`}`;
}

/** A request without the address of the server, which is chosen when it is sent. */
export interface WireRequest {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly contentType?: string;
}

/** Returns the query parameters that select a revision. */
export function pointParameters(at: ReadAt): URLSearchParams {
  if (at.at === 'latest') return new URLSearchParams();
  if (at.at === 'any') return new URLSearchParams({ resourceVersion: '0' });
  const parameters = new URLSearchParams({ resourceVersion: String(at.revision) });
  if (at.at === 'exact') parameters.set('resourceVersionMatch', 'Exact');
  return parameters;
}

export function objectPath(key: string): string {
  const [kind = '', namespace = '', name = ''] = key.split('/');
  const { root, plural } = kindNamed(kind);
  return `${root}/namespaces/${namespace}/${plural}/${name}`;
}

/** Converts a write to a request. */
export function writeRequest(op: WriteOperation): WireRequest {
  const [kindName = '', namespace = '', name = ''] = op.key.split('/');
  const kind = kindNamed(kindName);
  const path = objectPath(op.key);
  const version = op.do !== 'create' && op.expect !== undefined ? { resourceVersion: String(op.expect) } : {};
  const contentType = 'application/merge-patch+json';
  switch (op.do) {
    case 'create': {
      const metadata = { name, namespace, labels: op.labels };
      const body = { kind: kind.kind, apiVersion: kind.apiVersion, metadata, ...kind.body(op.values) };
      return { method: 'POST', path: path.slice(0, path.lastIndexOf('/')), body };
    }
    case 'replace': {
      const metadata = { name, namespace, labels: op.labels, ...version };
      return {
        method: 'PUT',
        path,
        body: { kind: kind.kind, apiVersion: kind.apiVersion, metadata, ...kind.body(op.values) },
      };
    }
    case 'patch': {
      const metadata = { ...version, ...(op.labels ? { labels: op.labels } : {}) };
      return { method: 'PATCH', path, contentType, body: { metadata, ...kind.body(op.values) } };
    }
    case 'status':
      return {
        method: 'PATCH',
        path: `${path}/status`,
        contentType,
        body: { metadata: version, ...kind.status(op.status) },
      };
    case 'delete':
      return op.expect === undefined
        ? { method: 'DELETE', path }
        : { method: 'DELETE', path, body: { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: version } };
  }
}
