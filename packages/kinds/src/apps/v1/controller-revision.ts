import { defineKind, fieldError, type KindDefinition } from '@keelson/core';
import { checkNonNegative, checkUnchanged, newErrors } from '../../validation/checks.ts';
import { controllerRevisionColumns } from '../../workload/workload-columns.ts';
import { ControllerRevisionSchema, type ControllerRevision as ControllerRevisionType } from './schema/index.ts';

/** A state that a controller keeps, to be able to return to it: of a StatefulSet or DaemonSet, its template. */
export const ControllerRevision: KindDefinition<ControllerRevisionType> = defineKind({
  group: 'apps',
  version: 'v1',
  kind: 'ControllerRevision',
  schema: ControllerRevisionSchema,
  strategy: {
    validate({ revision }) {
      const errors = newErrors();
      checkNonNegative(revision, 'revision', errors);
      return errors;
    },
    validateCreate: ({ data }) => (data === undefined ? [fieldError.required('data', 'data is mandatory')] : []),
    validateUpdate({ data }, old) {
      const errors = newErrors();
      checkUnchanged(data, old.data, 'data', errors);
      return errors;
    },
  },
  columns: controllerRevisionColumns,
});
export type ControllerRevision = ControllerRevisionType;
