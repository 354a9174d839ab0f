import { type KubeObject, labelSelectorOf, type Schema, type SubresourceDefinition } from '@keelson/core';
import { scaleMetadata, scaleSubresource } from '../../workload/scale.ts';
import { type Scale, ScaleSchema } from './schema/index.ts';

/**
 * `scale` of extensions/v1beta1 and of the older versions of apps. The selector is always given as text, and as a map
 * when it has no expressions.
 */
export function olderScale(group: string, version: string, schema: Schema<Scale>): SubresourceDefinition {
  return scaleSubresource({ group, version, kind: 'Scale' }, schema, (parent): Scale & KubeObject => {
    const { selector } = parent.spec;
    const labels = selector?.matchExpressions?.length ? undefined : selector?.matchLabels;
    return {
      kind: 'Scale',
      apiVersion: `${group}/${version}`,
      metadata: scaleMetadata(parent),
      spec: { replicas: parent.spec.replicas ?? 0 },
      status: {
        replicas: parent.status?.replicas ?? 0,
        ...(labels ? { selector: { ...labels } } : {}),
        targetSelector: labelSelectorOf(selector).toString(),
      },
    };
  });
}

/** `scale` of the kinds of extensions/v1beta1. */
export const extensionsScale = olderScale('extensions', 'v1beta1', ScaleSchema);
