import { createHash } from 'node:crypto';
import type { KubeObject } from '@keelson/core';
import type { FieldChanges, Fields, SeenObject } from '../records.ts';

/** Wire representation of a kind of the workload. */
export interface WorkloadKind {
  readonly kind: string;
  readonly apiVersion: string;
  /** Path up to the namespace. */
  readonly root: string;
  readonly plural: string;
  readonly hasStatus: boolean;
  /** A field of `values` that field selectors support, and its path in the object. */
  readonly selectable?: { readonly field: string; readonly path: string; readonly values: readonly string[] };
  /** Converts values to parts of an object or of a merge patch. */
  body(values: FieldChanges): Readonly<Record<string, unknown>>;
  status(changes: FieldChanges): Readonly<Record<string, unknown>>;
  valuesOf(object: KubeObject): Fields;
  statusOf(object: KubeObject): Fields;
}

type Loose = {
  readonly data?: Fields;
  readonly spec?: { colour?: string; settings?: Fields };
  readonly status?: { phase?: string };
};

const configMap: WorkloadKind = {
  kind: 'ConfigMap',
  apiVersion: 'v1',
  root: '/api/v1',
  plural: 'configmaps',
  hasStatus: false,
  body: (data) => ({ data }),
  status: () => ({}),
  valuesOf: (object) => (object as Loose).data ?? {},
  statusOf: () => ({}),
};

/**
 * `Part` of the kinds of the client suite: a spec with a generation, a status subresource, a selectable field.
 */
const part: WorkloadKind = {
  kind: 'Part',
  apiVersion: 'suite.keelson.dev/v1',
  root: '/apis/suite.keelson.dev/v1',
  plural: 'parts',
  hasStatus: true,
  selectable: { field: 'colour', path: 'spec.colour', values: ['red', 'green', 'blue'] },
  body: ({ colour, ...settings }) => ({ spec: { settings, ...(colour === undefined ? {} : { colour }) } }),
  status: ({ token }) => ({ status: { phase: token } }),
  valuesOf(object) {
    const { colour, settings = {} } = (object as Loose).spec ?? {};
    return colour === undefined ? settings : { ...settings, colour };
  },
  statusOf(object) {
    const phase = (object as Loose).status?.phase;
    return phase === undefined ? {} : { token: phase };
  },
};

/** The kinds that a workload writes. A server must serve `Part`, which `clientSuiteKinds` contains. */
export const workloadKinds: readonly WorkloadKind[] = [configMap, part];

/** JSON with sorted fields. */
function stable(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(stable).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${stable(field)}`).join(',')}}`;
}

/** Extracts the fields of an object that the checker uses. */
export function seenObject(kind: WorkloadKind, object: KubeObject): SeenObject {
  const {
    kind: _,
    apiVersion: __,
    metadata = {},
    ...rest
  } = object as KubeObject & { metadata?: Record<string, unknown> };
  const { resourceVersion, ...meta } = metadata as Record<string, unknown>;
  const digest = createHash('sha1').update(stable({ meta, rest })).digest('base64url').slice(0, 16);
  const { generation, labels } = meta;
  return {
    key: `${kind.kind}/${String(meta['namespace'])}/${String(meta['name'])}`,
    uid: String(meta['uid']),
    revision: Number(resourceVersion),
    created: String(meta['creationTimestamp']),
    ...(typeof generation === 'number' ? { generation } : {}),
    labels: (labels as Fields | undefined) ?? {},
    values: kind.valuesOf(object),
    status: kind.statusOf(object),
    digest,
  };
}
