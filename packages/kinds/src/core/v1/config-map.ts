import { defineKind, fieldError, type KindDefinition } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { base64Bytes } from '../../validation/base64.ts';
import { checkDataKeys, checkImmutableData, type Errors, maxDataBytes, newErrors } from '../../validation/checks.ts';
import { ConfigMapSchema, type ConfigMap as ConfigMapType } from './schema/index.ts';

/** Configuration data for pods. */
export const ConfigMap: KindDefinition<ConfigMapType> = defineKind({
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  names: { shortNames: ['cm'] },
  schema: ConfigMapSchema,
  strategy: {
    validate: validateConfigMap,
    validateUpdate(object, old) {
      const errors = newErrors();
      checkImmutableData(object, old, errors);
      return errors;
    },
  },
  columns: [
    nameColumn(),
    column(
      'Data',
      'string',
      'Number of keys.',
      ({ data, binaryData }: ConfigMapType) => keyCount(data) + keyCount(binaryData),
    ),
    ageColumn,
  ],
});
export type ConfigMap = ConfigMapType;

function validateConfigMap({ data, binaryData }: ConfigMapType): Errors {
  const errors = newErrors();
  checkDataKeys(data, 'data', errors);
  checkDataKeys(binaryData, 'binaryData', errors);
  let bytes = 0;
  for (const [key, value] of Object.entries(data ?? {})) {
    bytes += Buffer.byteLength(value);
    if (binaryData && Object.hasOwn(binaryData, key)) {
      errors.push(fieldError.invalid(`data[${key}]`, key, 'duplicate of key present in binaryData'));
    }
  }
  for (const value of Object.values(binaryData ?? {})) bytes += base64Bytes(value);
  if (bytes > maxDataBytes) errors.push(fieldError.tooLong('data', maxDataBytes));
  return errors;
}

function keyCount(data: Record<string, unknown> | undefined): number {
  return data ? Object.keys(data).length : 0;
}
