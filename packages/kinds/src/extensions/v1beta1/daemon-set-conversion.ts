import type { StorageConversion } from '@keelson/core';
import { DaemonSet as StoredKind } from '../../apps/v1/daemon-set.ts';
import type { DaemonSet as StoredDaemonSet } from '../../apps/v1/schema/index.ts';
import {
  integerAnnotation,
  isEmpty,
  templateGenerationAnnotation,
  withAnnotation,
  withoutAnnotation,
} from '../../workload/server-annotations.ts';
import type { DaemonSet } from './schema/index.ts';

/**
 * Daemon sets are stored as apps/v1, with `spec.templateGeneration`, which exists only in this version, as an
 * annotation. An annotation that is not an integer remains an annotation.
 */
export const daemonSetConversion: StorageConversion<DaemonSet> = {
  kind: StoredKind,
  toStorage(daemonSet) {
    const { templateGeneration, ...spec } = daemonSet.spec;
    const stored = { ...daemonSet, apiVersion: StoredKind.apiVersion, kind: StoredKind.kind, spec };
    if (templateGeneration === undefined) return stored;
    return withAnnotation(stored, templateGenerationAnnotation, String(templateGeneration));
  },
  fromStorage(object) {
    const stored = object as StoredDaemonSet;
    const templateGeneration = integerAnnotation(stored, templateGenerationAnnotation);
    const shown = { ...stored, apiVersion: 'extensions/v1beta1', kind: 'DaemonSet' };
    if (templateGeneration === undefined) return shown;
    return { ...withoutAnnotation(shown, templateGenerationAnnotation), spec: { ...shown.spec, templateGeneration } };
  },
  isRelabel: (json) => !json.includes(templateGenerationAnnotation),
};

/** Removes the annotation, which has no meaning in this version. */
export function dropGenerationAnnotation(daemonSet: DaemonSet): void {
  const annotations = daemonSet.metadata?.annotations;
  if (
    daemonSet.metadata &&
    annotations &&
    (Object.hasOwn(annotations, templateGenerationAnnotation) || isEmpty(annotations))
  ) {
    daemonSet.metadata = withoutAnnotation(daemonSet, templateGenerationAnnotation).metadata;
  }
}
