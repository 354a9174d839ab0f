import { defineKind, type FieldError, fieldError, type KindDefinition } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { checkNonNegative, checkPositive, newErrors } from '../../validation/checks.ts';
import { LeaseSchema, type Lease as LeaseType } from './schema/index.ts';

/** A lock that expires unless it is renewed. A PUT requires a resourceVersion, so that no update is lost. */
export const Lease: KindDefinition<LeaseType> = defineKind({
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  schema: LeaseSchema,
  strategy: {
    generation: 'none',
    allowCreateOnUpdate: true,
    allowUnconditionalUpdate: false,
    prepareForCreate: (lease) => dropCoordination(lease),
    prepareForUpdate: dropCoordination,
    validate: validateLease,
  },
  columns: [
    nameColumn(),
    column('Holder', 'string', 'Holder of the lease.', (lease: LeaseType) => lease.spec?.holderIdentity ?? ''),
    ageColumn,
  ],
});
export type Lease = LeaseType;

/** Removes the fields of coordinated leader election, which is off in Kubernetes, unless they are stored. */
function dropCoordination({ spec }: LeaseType, old?: LeaseType): void {
  if (old?.spec?.strategy === undefined) delete spec?.strategy;
  if (old?.spec?.preferredHolder === undefined) delete spec?.preferredHolder;
}

function validateLease({ spec }: LeaseType): FieldError[] {
  const errors = newErrors();
  checkPositive(spec?.leaseDurationSeconds, 'spec.leaseDurationSeconds', errors);
  checkNonNegative(spec?.leaseTransitions, 'spec.leaseTransitions', errors);
  if (spec?.strategy === '') errors.push(fieldError.invalid('spec.strategy', '', 'must not be empty'));
  if (spec?.preferredHolder && !spec.strategy) {
    errors.push(fieldError.forbidden('spec.preferredHolder', 'may only be specified if `strategy` is defined'));
  }
  return errors;
}
