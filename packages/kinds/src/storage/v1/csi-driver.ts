import { type Column, defineKind, type FieldError, fieldError, type KindDefinition } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { checkOneOf, checkUnchanged, type Errors, newErrors, sameJson } from '../../validation/checks.ts';
import { CSIDriverSchema, type CSIDriver as CSIDriverType, type TokenRequest } from './schema.ts';

const columns: readonly Column<CSIDriverType>[] = [
  nameColumn(),
  column('AttachRequired', 'boolean', 'Whether volumes are attached.', ({ spec }) => spec.attachRequired ?? true),
  column('PodInfoOnMount', 'boolean', 'Whether it receives the pod.', ({ spec }) => spec.podInfoOnMount ?? false),
  column('StorageCapacity', 'boolean', 'Whether it publishes capacity.', ({ spec }) => spec.storageCapacity ?? false),
  column(
    'TokenRequests',
    'string',
    'Tokens that it receives.',
    ({ spec }) => spec.tokenRequests?.map(({ audience }) => audience).join(',') ?? '<unset>',
  ),
  column(
    'RequiresRepublish',
    'boolean',
    'Whether volumes are refreshed.',
    ({ spec }) => spec.requiresRepublish ?? false,
  ),
  column('Modes', 'string', 'Kinds of volumes.', ({ spec }) => spec.volumeLifecycleModes?.join(',') || '<none>'),
  ageColumn,
];

/** Describes a CSI driver of the cluster. */
export const CSIDriver: KindDefinition<CSIDriverType> = defineKind({
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'CSIDriver',
  scope: 'Cluster',
  schema: CSIDriverSchema,
  strategy: {
    generation: 'none',
    allowUnconditionalUpdate: false,
    deleteReturnsObject: true,
    default({ spec }) {
      spec.attachRequired ??= true;
      spec.podInfoOnMount ??= false;
      spec.storageCapacity ??= false;
      spec.fsGroupPolicy ??= 'ReadWriteOnceWithFSType';
      if (!spec.volumeLifecycleModes?.length) spec.volumeLifecycleModes = ['Persistent'];
      spec.requiresRepublish ??= false;
      spec.seLinuxMount ??= false;
    },
    // Unlike other kinds, a driver has a generation after its first change only.
    prepareForUpdate({ metadata, spec }, old) {
      if (metadata && !sameJson(spec, old.spec)) metadata.generation = (old.metadata?.generation ?? 0) + 1;
    },
    validate: validateDriver,
    validateUpdate({ spec }, { spec: old }) {
      const errors = newErrors();
      checkUnchanged(spec.attachRequired, old.attachRequired, 'spec.attachedRequired', errors);
      checkUnchanged(spec.volumeLifecycleModes, old.volumeLifecycleModes, 'spec.volumeLifecycleModes', errors);
      return errors;
    },
  },
  columns,
});
export type CSIDriver = CSIDriverType;

function validateDriver({ spec }: CSIDriverType): FieldError[] {
  const errors = newErrors();
  const policies = ['File', 'None', 'ReadWriteOnceWithFSType'];
  checkOneOf(spec.fsGroupPolicy, policies, 'spec.fsGroupPolicy', errors);
  checkTokenRequests(spec.tokenRequests ?? [], 'spec.tokenRequests', errors);
  for (const mode of spec.volumeLifecycleModes ?? []) {
    checkOneOf(mode, ['Persistent', 'Ephemeral'], 'spec.volumeLifecycleModes', errors);
  }
  const seconds = spec.nodeAllocatableUpdatePeriodSeconds;
  if (seconds !== undefined && seconds < 10) {
    const text = 'must be greater than or equal to 10 seconds';
    errors.push(fieldError.invalid('spec.nodeAllocatableUpdatePeriodSeconds', seconds, text));
  }
  return errors;
}

function checkTokenRequests(requests: readonly TokenRequest[], path: string, errors: Errors): void {
  const audiences = new Set<string>();
  requests.forEach(({ audience, expirationSeconds }, i) => {
    if (audiences.has(audience)) {
      errors.push(fieldError.duplicate(`${path}[${i}].audience`, audience));
      return;
    }
    audiences.add(audience);
    const at = `${path}[${i}].expirationSeconds`;
    if (expirationSeconds === undefined) return;
    if (expirationSeconds < 600) {
      errors.push(fieldError.invalid(at, expirationSeconds, 'may not specify a duration less than 10 minutes'));
    } else if (expirationSeconds > 2 ** 32) {
      errors.push(fieldError.invalid(at, expirationSeconds, 'may not specify a duration larger than 2^32 seconds'));
    }
  });
}
