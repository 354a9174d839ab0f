import {
  fieldError,
  type GroupVersionKind,
  type KubeObject,
  type LabelSelectorSpec,
  labelSelectorOf,
  type ObjectMeta,
  type SubresourceDefinition,
  statusErrors,
} from '@keelson/core';
import {
  type Scale as AutoscalingScale,
  ScaleSchema as AutoscalingScaleSchema,
} from '../autoscaling/v1/schema/index.ts';
import {
  type Scale as ExtensionsScale,
  ScaleSchema as ExtensionsScaleSchema,
} from '../extensions/v1beta1/schema/index.ts';

interface Scalable extends KubeObject {
  spec: { replicas?: number; selector?: LabelSelectorSpec };
  status?: { replicas?: number };
}

/** `scale` of the kinds of apps/v1: the selector is a string. See docs/reference/api-rules.md#scale. */
export const autoscalingScale = scaleSubresource(
  { group: 'autoscaling', version: 'v1', kind: 'Scale' },
  AutoscalingScaleSchema,
  (parent): AutoscalingScale => ({
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: scaleMetadata(parent),
    spec: { replicas: parent.spec.replicas ?? 0 },
    status: { replicas: parent.status?.replicas ?? 0, selector: labelSelectorOf(parent.spec.selector).toString() },
  }),
);

/** `scale` of extensions/v1beta1 kinds: the selector is a map if one can express it, and always a text besides. */
export const extensionsScale = scaleSubresource(
  { group: 'extensions', version: 'v1beta1', kind: 'Scale' },
  ExtensionsScaleSchema,
  (parent): ExtensionsScale => {
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

function scaleMetadata({ metadata = {} }: Scalable): ObjectMeta {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  return {
    ...(name === undefined ? {} : { name }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
  };
}

function scaleSubresource(
  bodyKind: GroupVersionKind,
  schema: typeof AutoscalingScaleSchema | typeof ExtensionsScaleSchema,
  read: (parent: Scalable) => KubeObject,
): SubresourceDefinition {
  return {
    type: 'projection',
    name: 'scale',
    bodyKind,
    schema,
    read,
    write(parent: Scalable, body: AutoscalingScale | ExtensionsScale) {
      const replicas = body.spec?.replicas ?? 0;
      if (replicas < 0) {
        const error = fieldError.invalid('spec.replicas', replicas, 'must be greater than or equal to 0');
        throw statusErrors.invalid(bodyKind, parent.metadata?.name ?? '', [error]);
      }
      parent.spec.replicas = replicas;
    },
  };
}
