import { defineKind, type KindDefinition } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { applyFinalize, namespaceStrategy } from './namespace/namespace-strategy.ts';
import { NamespaceSchema, type Namespace as NamespaceType } from './schema/index.ts';

/** A scope for names. */
export const Namespace: KindDefinition<NamespaceType> = defineKind({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  scope: 'Cluster',
  names: { shortNames: ['ns'] },
  schema: NamespaceSchema,
  strategy: namespaceStrategy,
  subresources: [
    { type: 'replace', name: 'finalize', apply: applyFinalize },
    { type: 'status', name: 'status' },
  ],
  verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
  selectableFields: [['status.phase', (namespace) => namespace.status?.phase ?? '']],
  columns: [
    nameColumn(),
    column(
      'Status',
      'string',
      'Active, or Terminating while the content is being deleted.',
      (namespace: NamespaceType) => namespace.status?.phase ?? '',
    ),
    ageColumn,
  ],
});
export type Namespace = NamespaceType;
