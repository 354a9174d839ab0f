import { defineKind, type KindDefinition } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { SecretSchema, type Secret as SecretType } from './schema/index.ts';
import { secretStrategy } from './secret/secret-strategy.ts';

/** Confidential data for pods. */
export const Secret: KindDefinition<SecretType> = defineKind({
  group: '',
  version: 'v1',
  kind: 'Secret',
  schema: SecretSchema,
  strategy: secretStrategy,
  selectableFields: [['type', (secret) => secret.type ?? '']],
  columns: [
    nameColumn(),
    column('Type', 'string', 'What the data is for.', (secret: SecretType) => secret.type ?? ''),
    column('Data', 'string', 'Number of keys.', (secret: SecretType) => Object.keys(secret.data ?? {}).length),
    ageColumn,
  ],
});
export type Secret = SecretType;
