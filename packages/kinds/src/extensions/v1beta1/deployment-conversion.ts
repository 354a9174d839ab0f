import type { StorageConversion } from '@keelson/core';
import { Deployment as StoredKind } from '../../apps/v1/deployment.ts';
import type { Deployment as StoredDeployment } from '../../apps/v1/schema/index.ts';
import {
  integerAnnotation,
  isEmpty,
  rollbackToAnnotation,
  withAnnotation,
  withoutAnnotation,
} from '../../workload/server-annotations.ts';
import type { Deployment } from './schema/index.ts';

/**
 * Deployments of an older version are stored as apps/v1, with `spec.rollbackTo`, which does not exist there, as an
 * annotation. An annotation that is not an integer remains an annotation.
 */
export function deploymentConversion(apiVersion: string): StorageConversion<Deployment> {
  return {
    kind: StoredKind,
    toStorage(deployment) {
      const { rollbackTo, ...spec } = deployment.spec;
      const stored = { ...deployment, apiVersion: StoredKind.apiVersion, kind: StoredKind.kind, spec };
      return rollbackTo ? withAnnotation(stored, rollbackToAnnotation, String(rollbackTo.revision ?? 0)) : stored;
    },
    fromStorage(object) {
      const stored = object as StoredDeployment;
      const revision = integerAnnotation(stored, rollbackToAnnotation);
      const shown = { ...stored, apiVersion, kind: 'Deployment' };
      if (revision === undefined) return shown;
      const rollbackTo = revision === 0 ? {} : { revision };
      return { ...withoutAnnotation(shown, rollbackToAnnotation), spec: { ...shown.spec, rollbackTo } };
    },
    isRelabel: (json) => !json.includes(rollbackToAnnotation),
  };
}

/** Removes the annotation, which has no meaning in this version, and a rollback revision of 0. */
export function dropRollbackAnnotation(deployment: Deployment): void {
  const annotations = deployment.metadata?.annotations;
  if (
    deployment.metadata &&
    annotations &&
    (Object.hasOwn(annotations, rollbackToAnnotation) || isEmpty(annotations))
  ) {
    deployment.metadata = withoutAnnotation(deployment, rollbackToAnnotation).metadata;
  }
  if (deployment.spec.rollbackTo?.revision === 0) delete deployment.spec.rollbackTo.revision;
}
