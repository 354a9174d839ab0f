import { type Column, defineKind, type FieldError, fieldError, type KindDefinition } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { checkRequiredOneOf, checkUnchanged, newErrors } from '../../validation/checks.ts';
import { PriorityClassSchema, type PriorityClass as PriorityClassType } from './schema.ts';

const highestUserPriority = 1_000_000_000;
const systemPrefix = 'system-';

/** The built-in priority classes, which every server creates and protects. */
export const systemPriorityClasses: readonly PriorityClassType[] = [
  systemClass(
    'system-node-critical',
    2 * highestUserPriority + 1000,
    'Used for system critical pods that must not be moved from their current node.',
  ),
  systemClass(
    'system-cluster-critical',
    2 * highestUserPriority,
    'Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.',
  ),
];

const columns: readonly Column<PriorityClassType>[] = [
  nameColumn(),
  column('Value', 'integer', 'The priority.', ({ value }) => value),
  column(
    'Global-Default',
    'boolean',
    'Whether pods without a class get it.',
    ({ globalDefault }) => globalDefault ?? false,
  ),
  ageColumn,
  column('PreemptionPolicy', 'string', 'Whether its pods displace others.', (object) => object.preemptionPolicy ?? ''),
];

/** Assigns a priority to pods by name. */
export const PriorityClass: KindDefinition<PriorityClassType> = defineKind({
  group: 'scheduling.k8s.io',
  version: 'v1',
  kind: 'PriorityClass',
  scope: 'Cluster',
  names: { shortNames: ['pc'] },
  schema: PriorityClassSchema,
  strategy: {
    default(object) {
      object.preemptionPolicy ??= 'PreemptLowerPriority';
    },
    // The generation is always 1, because the fields that identify a class are immutable.
    prepareForCreate(object) {
      object.metadata = { ...object.metadata, generation: 1 };
    },
    validate: validatePriorityClass,
    validateUpdate(object, old) {
      const errors = newErrors();
      if (object.value !== old.value) errors.push(fieldError.forbidden('value', 'may not be changed in an update.'));
      checkUnchanged(object.preemptionPolicy, old.preemptionPolicy, 'preemptionPolicy', errors);
      return errors;
    },
    undeletable: (name) =>
      systemPriorityClasses.some(({ metadata }) => metadata?.name === name)
        ? 'this is a system priority class and cannot be deleted'
        : undefined,
  },
  columns,
});
export type PriorityClass = PriorityClassType;

function systemClass(name: string, value: number, description: string): PriorityClassType {
  return { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name }, value, description };
}

function validatePriorityClass(object: PriorityClassType): FieldError[] {
  const errors = newErrors();
  const name = object.metadata?.name ?? '';
  if (name.startsWith(systemPrefix)) {
    const why = systemClassProblem(name, object);
    if (why !== undefined) {
      const text = `priority class names with '${systemPrefix}' prefix are reserved for system use only. error: ${why}`;
      errors.push(fieldError.forbidden('metadata.name', text));
    }
  } else if (object.value > highestUserPriority) {
    const text = `maximum allowed value of a user defined priority is ${highestUserPriority}`;
    errors.push(fieldError.forbidden('value', text));
  }
  checkRequiredOneOf(object.preemptionPolicy, ['Never', 'PreemptLowerPriority'], 'preemptionPolicy', errors);
  return errors;
}

function systemClassProblem(name: string, { value, globalDefault }: PriorityClassType): string | undefined {
  const known = systemPriorityClasses.find(({ metadata }) => metadata?.name === name);
  if (known === undefined) return `${name} is not a known system priority class`;
  if (known.value !== value) return `value of ${name} PriorityClass must be ${known.value}`;
  return globalDefault ? `globalDefault of ${name} PriorityClass must be false` : undefined;
}
