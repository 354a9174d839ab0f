import { defineKind, type FieldError, fieldError, type KindDefinition, qualifiedNameErrors } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import {
  checkNonNegative,
  checkText,
  checkUnique,
  type Errors,
  newErrors,
  pushInvalid,
} from '../../validation/checks.ts';
import { checkDriverName } from '../../validation/volumes.ts';
import { type CSINodeDriver, CSINodeSchema, type CSINode as CSINodeType } from './schema.ts';

const maxNodeIdBytes = 256;

/** The CSI drivers of a node; the object has the name of the node. */
export const CSINode: KindDefinition<CSINodeType> = defineKind({
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'CSINode',
  scope: 'Cluster',
  schema: CSINodeSchema,
  strategy: {
    generation: 'none',
    allowUnconditionalUpdate: false,
    deleteReturnsObject: true,
    validate: validateNode,
    validateUpdate({ spec }, { spec: old }) {
      const errors = newErrors();
      const names = new Set(old.drivers.map(({ name }) => name));
      const known = new Set(old.drivers.map(unchanging));
      for (const driver of spec.drivers) {
        if (!names.has(driver.name) || known.has(unchanging(driver))) continue;
        errors.push(fieldError.invalid('spec.drivers', driver, 'field is immutable'));
      }
      return errors;
    },
  },
  columns: [
    nameColumn(),
    column('Drivers', 'integer', 'Number of drivers.', ({ spec }: CSINodeType) => spec.drivers?.length ?? 0),
    ageColumn,
  ],
});
export type CSINode = CSINodeType;

/** The immutable fields of a driver as text for comparisons. */
function unchanging({ name, nodeID, topologyKeys }: CSINodeDriver): string {
  return JSON.stringify([name, nodeID, topologyKeys ?? []]);
}

function validateNode({ spec }: CSINodeType): FieldError[] {
  const errors = newErrors();
  const names = new Set<string>();
  spec.drivers.forEach((driver, i) => {
    const path = `spec.drivers[${i}]`;
    checkDriverName(driver.name, `${path}.name`, errors);
    checkNodeId(driver.nodeID, `${path}.nodeID`, errors);
    checkNonNegative(driver.allocatable?.count, `${path}.allocatable.count`, errors);
    checkUnique(driver.name, names, `${path}.name`, errors);
    const keys = new Set<string>();
    for (const key of driver.topologyKeys ?? []) {
      if (key === '') errors.push(fieldError.required(path));
      checkUnique(key, keys, path, errors);
      pushInvalid(qualifiedNameErrors(key), key, path, errors);
    }
  });
  return errors;
}

function checkNodeId(id: string, path: string, errors: Errors): void {
  if (!checkText(id, path, errors) || Buffer.byteLength(id) <= maxNodeIdBytes) return;
  errors.push(fieldError.invalid(path, id, `must be ${maxNodeIdBytes} characters or less`));
}
