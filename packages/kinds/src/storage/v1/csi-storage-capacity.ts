import { defineKind, dns1123SubdomainErrors, fieldError, type KindDefinition } from '@keelson/core';
import { column, nameColumn } from '../../columns/columns.ts';
import { checkLabelSelector, checkUnchanged, newErrors, pushInvalid } from '../../validation/checks.ts';
import { expressionWarnings, labelWarnings } from '../../validation/deprecated-labels.ts';
import { isNegativeAmount } from '../../validation/quantities.ts';
import { CSIStorageCapacitySchema, type CSIStorageCapacity as CSIStorageCapacityType } from './schema.ts';

/** Free storage of a class in a part of the cluster. */
export const CSIStorageCapacity: KindDefinition<CSIStorageCapacityType> = defineKind({
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'CSIStorageCapacity',
  names: { plural: 'csistoragecapacities' },
  schema: CSIStorageCapacitySchema,
  strategy: {
    generation: 'none',
    allowUnconditionalUpdate: false,
    validate({ nodeTopology, storageClassName, capacity }) {
      const errors = newErrors();
      checkLabelSelector(nodeTopology, 'nodeTopology', errors);
      pushInvalid(dns1123SubdomainErrors(storageClassName), storageClassName, 'storageClassName', errors);
      if (capacity !== undefined && isNegativeAmount(capacity)) {
        errors.push(fieldError.invalid('capacity', capacity, 'must be greater than or equal to 0'));
      }
      return errors;
    },
    warnings: ({ nodeTopology }) => [
      ...expressionWarnings(nodeTopology?.matchExpressions, 'nodeTopology'),
      ...Object.keys(nodeTopology?.matchLabels ?? {}).flatMap((key) =>
        labelWarnings(key, `nodeTopology.matchLabels.${key}`),
      ),
    ],
    validateUpdate(object, old) {
      const errors = newErrors();
      checkUnchanged(object.nodeTopology, old.nodeTopology, 'nodeTopology', errors);
      checkUnchanged(object.storageClassName, old.storageClassName, 'storageClassName', errors);
      return errors;
    },
  },
  columns: [
    nameColumn(),
    column(
      'StorageClassName',
      'string',
      'Class of the storage.',
      (object: CSIStorageCapacityType) => object.storageClassName ?? '',
    ),
    column('Capacity', 'string', 'Free storage.', ({ capacity }: CSIStorageCapacityType) => capacity ?? '<unset>'),
  ],
});
export type CSIStorageCapacity = CSIStorageCapacityType;
