import { labelSelectorOf } from '@keelson/core';
import { scaleMetadata, scaleSubresource } from '../../workload/scale.ts';
import { type Scale, ScaleSchema } from './schema/index.ts';

/**
 * `scale` of the kinds of extensions/v1beta1. The selector is always given as text, and as a map when it has no
 * expressions.
 */
export const extensionsScale = scaleSubresource(
  { group: 'extensions', version: 'v1beta1', kind: 'Scale' },
  ScaleSchema,
  (parent): Scale => {
    const { selector } = parent.spec;
    const labels = selector?.matchExpressions?.length ? undefined : selector?.matchLabels;
    return {
      kind: 'Scale',
      apiVersion: 'extensions/v1beta1',
      metadata: scaleMetadata(parent),
      spec: { replicas: parent.spec.replicas ?? 0 },
      status: {
        replicas: parent.status?.replicas ?? 0,
        ...(labels ? { selector: { ...labels } } : {}),
        targetSelector: labelSelectorOf(selector).toString(),
      },
    };
  },
);
