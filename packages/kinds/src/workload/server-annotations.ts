import type { KubeObject, ObjectMeta } from '@keelson/core';
import { parseJsonText } from '@keelson/core/internal';

/** Annotation of stored DaemonSets for `spec.templateGeneration` of extensions/v1beta1. */
export const templateGenerationAnnotation = 'deprecated.daemonset.template.generation';
/** Annotation of stored Deployments for `spec.rollbackTo.revision` of extensions/v1beta1. */
export const rollbackToAnnotation = 'deprecated.deployment.rollback.rollbackTo';

const canonicalInteger = /^(?:0|-?[1-9]\d{0,15})$/;

/** The integer in an annotation. Other texts, including non-canonical integers, are ignored and remain unchanged. */
export function integerAnnotation(object: KubeObject, name: string): number | undefined {
  const annotations = object.metadata?.annotations;
  const text = annotations && Object.hasOwn(annotations, name) ? annotations[name] : undefined;
  if (text === undefined || !canonicalInteger.test(text)) return undefined;
  // As in API documents, an integer beyond ±(2^53 - 1) is a bigint, although its declared type is `number`.
  const value = parseJsonText(text) as number;
  return typeof value === 'bigint' || Number.isSafeInteger(value) ? value : undefined;
}

/** A copy of the object (metadata and annotations only) with the annotation set. */
export function withAnnotation<T extends KubeObject>(object: T, name: string, value: string): T {
  return {
    ...object,
    metadata: { ...object.metadata, annotations: { ...object.metadata?.annotations, [name]: value } },
  };
}

/** True for an empty map of annotations, which conversions write as absent. */
export function isEmpty(annotations: Record<string, string>): boolean {
  for (const _ in annotations) return false;
  return true;
}

/** A copy of the object (metadata and annotations only) without the annotation; an empty map is removed. */
export function withoutAnnotation<T extends KubeObject>(object: T, name: string): T & { metadata: ObjectMeta } {
  const metadata = { ...object.metadata };
  const annotations = { ...metadata.annotations };
  delete annotations[name];
  if (Object.keys(annotations).length > 0) metadata.annotations = annotations;
  else delete metadata.annotations;
  return { ...object, metadata };
}
