import type { KindDefinition } from '@keelson/core';
import { CustomResourceDefinition, type JsonSchemaProps } from '@keelson/kinds';
import { formatCheck } from '../schema/formats.ts';
import { someSchema } from '../schema/schema-node.ts';
import { checkDefinition } from './check-definition.ts';
import { checkRules } from './check-rules.ts';

/** Finalizer that keeps a deleted definition until its objects are deleted. */
export const cleanupFinalizer = 'customresourcecleanup.apiextensions.k8s.io';

/** The kind CustomResourceDefinition with complete validation and status handling. */
export const CheckedDefinition: KindDefinition<CustomResourceDefinition> = Object.freeze({
  ...CustomResourceDefinition,
  strategy: Object.freeze({
    ...CustomResourceDefinition.strategy,
    prepareForCreate: (definition: CustomResourceDefinition) => {
      definition.status = {};
      addStoredVersion(definition);
    },
    prepareForUpdate: (definition: CustomResourceDefinition) => addStoredVersion(definition),
    validateCreate: (definition: CustomResourceDefinition) => checkDefinition(definition, undefined, checkRules),
    validateUpdate: (definition: CustomResourceDefinition, old: CustomResourceDefinition) =>
      checkDefinition(definition, old, checkRules),
    warnings: formatWarnings,
    finalizerRule: 'qualifiedName',
    // The finalizer is added when the deletion begins, not at the creation.
    heldBack: ({ metadata }: CustomResourceDefinition) => metadata?.deletionTimestamp === undefined,
    beginDeletion: ({ metadata }: CustomResourceDefinition) => {
      if (metadata && !metadata.finalizers?.includes(cleanupFinalizer))
        metadata.finalizers = [...(metadata.finalizers ?? []), cleanupFinalizer];
    },
  }),
});

/** Adds the storage version to `storedVersions`, because objects may be stored in this version from now on. */
function addStoredVersion(definition: CustomResourceDefinition): void {
  const name = definition.spec.versions.find(({ storage }) => storage)?.name;
  const stored = definition.status?.storedVersions ?? [];
  if (name === undefined || stored.includes(name)) return;
  definition.status = { ...definition.status, storedVersions: [...stored, name] };
}

function formatWarnings({ spec }: CustomResourceDefinition): string[] {
  const unknown = new Set<string>();
  const visit = ({ type, format = '' }: JsonSchemaProps): boolean => {
    if (type === 'string' && format !== '' && formatCheck(format) === undefined) unknown.add(format);
    return false;
  };
  for (const { schema } of spec.versions) if (schema?.openAPIV3Schema) someSchema(schema.openAPIV3Schema, '', visit);
  return [...unknown].map((format) => `unrecognized format ${JSON.stringify(format)}`);
}
