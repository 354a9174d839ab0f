import {
  type Column,
  fieldError,
  type GroupVersionKind,
  type KubeObject,
  type LabelSelectorSpec,
  labelSelectorOf,
  type ObjectMeta,
  type Schema,
  type SubresourceDefinition,
  statusErrors,
} from '@keelson/core';
import { type Scale, ScaleSchema } from '../autoscaling/v1/schema/index.ts';
import { ageColumn, column, nameColumn } from '../columns/columns.ts';

/** An object with replicas. */
export interface Scalable extends KubeObject {
  spec: { replicas?: number; selector?: LabelSelectorSpec };
  status?: { replicas?: number };
}

/** The fields that all versions of Scale share. */
interface ScaleBody extends KubeObject {
  spec?: { replicas?: number };
}

const columns: readonly Column<ScaleBody & { readonly status?: { readonly replicas?: number } }>[] = [
  nameColumn(),
  column('Desired', 'integer', 'Pods wanted.', ({ spec }) => spec?.replicas ?? 0),
  column('Available', 'integer', 'Pods that exist.', ({ status }) => status?.replicas ?? 0),
  ageColumn,
];

/** The subresource `scale` of autoscaling/v1, whose selector is a string: see docs/reference/api-rules.md#scale. */
export function autoscalingScaleOf<T extends KubeObject & { spec: { replicas?: number } }>(
  selectorOf: (parent: T) => LabelSelectorSpec | undefined,
): SubresourceDefinition {
  return scaleSubresource({ group: 'autoscaling', version: 'v1', kind: 'Scale' }, ScaleSchema, (parent): Scale => {
    const selector = labelSelectorOf(selectorOf(parent as KubeObject as T)).toString();
    return {
      kind: 'Scale',
      apiVersion: 'autoscaling/v1',
      metadata: scaleMetadata(parent),
      spec: { replicas: parent.spec.replicas ?? 0 },
      status: { replicas: parent.status?.replicas ?? 0, selector },
    };
  });
}

/** `scale` of the kinds of apps/v1. */
export const autoscalingScale = autoscalingScaleOf((parent: Scalable) => parent.spec.selector);

/** The metadata of a Scale: the identity of the object that is scaled. */
export function scaleMetadata({ metadata = {} }: KubeObject): ObjectMeta {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  return {
    ...(name === undefined ? {} : { name }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
  };
}

/** The subresource `scale`, with the Scale kind of one API version. */
export function scaleSubresource(
  bodyKind: GroupVersionKind,
  schema: Schema<ScaleBody>,
  read: (parent: Scalable) => KubeObject,
): SubresourceDefinition {
  return {
    type: 'projection',
    name: 'scale',
    bodyKind,
    schema,
    columns,
    read,
    write(parent: Scalable, body: ScaleBody) {
      const replicas = body.spec?.replicas ?? 0;
      if (replicas < 0) {
        const error = fieldError.invalid('spec.replicas', replicas, 'must be greater than or equal to 0');
        throw statusErrors.invalid(bodyKind, parent.metadata?.name ?? '', [error]);
      }
      parent.spec.replicas = replicas;
    },
  };
}
