import { createHash } from 'node:crypto';
import { type FieldError, validateObjectMeta } from '@keelson/core';
import { decoderOf, isDecodeTypeError, isJsonObject } from '@keelson/core/internal';
import { Pod } from '@keelson/kinds';
import { PodAnnotation, type SourceAnnotationValue } from '../base/pod/pod-spec.ts';
import { ManifestError } from './parse-manifest.ts';

/** JSON text that does not depend on the order of fields. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${canonicalJson(field)}`).join(',')}}`;
}

/** The origin of a manifest. */
export interface ManifestOrigin {
  readonly nodeName: string;
  /** The value of the annotation. */
  readonly source: SourceAnnotationValue;
  /** Distinguishes equal manifests of different places: `file:/etc/pods/web.yaml`. */
  readonly place: string;
}

/** A static pod, and the unknown fields of its manifest. */
export interface StaticPod {
  readonly pod: Pod;
  readonly unknownFields: readonly string[];
}

function textOf(errors: readonly FieldError[]): string {
  const shown = errors.slice(0, 5).map(({ field, message }) => `${field}: ${message}`);
  return errors.length > shown.length
    ? `${shown.join('; ')} (and ${errors.length - shown.length} more)`
    : shown.join('; ');
}

/**
 * The UID of a static pod: equal for equal manifests of one place, independent of the order of fields and of comments.
 * A changed manifest is therefore another pod.
 */
function uidOf(manifest: unknown, { nodeName, place }: ManifestOrigin): string {
  return createHash('md5').update(`host:${nodeName}`).update(place).update(canonicalJson(manifest)).digest('hex');
}

function decode(manifest: unknown): StaticPod {
  if (!isJsonObject(manifest) || manifest['kind'] !== 'Pod' || manifest['apiVersion'] !== 'v1') {
    throw new ManifestError('is not a Pod of v1');
  }
  try {
    const { value, unknownFields, errors } = decoderOf(Pod.schema)(manifest);
    if (errors.length > 0) throw new ManifestError(textOf(errors));
    return { pod: value, unknownFields };
  } catch (error) {
    if (isDecodeTypeError(error)) throw new ManifestError(error.message, { cause: error });
    throw error;
  }
}

/**
 * Creates a static pod from a manifest: see docs/reference/agent-rules.md#static-pods.
 *
 * @throws ManifestError
 */
export function staticPod(manifest: unknown, origin: ManifestOrigin): StaticPod {
  const { pod, unknownFields } = decode(manifest);
  const { nodeName, source } = origin;
  const meta = pod.metadata ?? {};
  const given = meta.name ?? '';
  if (given === '') throw new ManifestError('metadata.name: Required value');
  const uid = meta.uid || uidOf(manifest, origin);
  pod.metadata = {
    name: `${given}-${nodeName}`,
    namespace: meta.namespace || 'default',
    uid,
    ...(meta.labels === undefined ? {} : { labels: meta.labels }),
    annotations: { ...meta.annotations, [PodAnnotation.source]: source, [PodAnnotation.hash]: uid },
  };
  delete pod.metadata.annotations?.[PodAnnotation.mirror];
  Pod.strategy.default?.(pod);
  pod.spec.nodeName = nodeName;
  pod.spec.tolerations = [...(pod.spec.tolerations ?? [])];
  if (
    !pod.spec.tolerations.some(
      ({ key, operator, effect }) => !key && operator === 'Exists' && (!effect || effect === 'NoExecute'),
    )
  ) {
    pod.spec.tolerations.push({ operator: 'Exists', effect: 'NoExecute' });
  }
  pod.status = { phase: 'Pending' };
  const errors = [
    ...validateObjectMeta(pod.metadata, { nameRule: 'dns1123Subdomain', namespaced: true }),
    ...(Pod.strategy.validate?.(pod) ?? []),
  ];
  if (errors.length > 0) throw new ManifestError(textOf(errors));
  return { pod, unknownFields };
}
