import {
  defineKind,
  type KindDefinition,
  type KubeObject,
  type Schema,
  type SubresourceDefinition,
} from '@keelson/core';
import { olderScale } from '../../extensions/v1beta1/scale.ts';
import { ControllerRevision } from '../v1/controller-revision.ts';
import { DaemonSet } from '../v1/daemon-set.ts';
import { Deployment } from '../v1/deployment.ts';
import { ReplicaSet } from '../v1/replica-set.ts';
import type * as v1 from '../v1/schema/index.ts';
import { StatefulSet } from '../v1/stateful-set.ts';
import * as schemas from './schema.ts';

const apiVersion = 'apps/v1beta2';
const status: SubresourceDefinition = { type: 'status', name: 'status' };
const scale = olderScale('apps', 'v1beta2', schemas.ScaleSchema);

/** A kind of apps/v1 for clients of Kubernetes 1.8 to 1.15: same fields and rules, stored as apps/v1. */
function olderVersionOf(
  kind: KindDefinition,
  schema: Schema<KubeObject>,
  subresources: readonly SubresourceDefinition[],
): KindDefinition {
  return defineKind({
    group: 'apps',
    version: 'v1beta2',
    kind: kind.kind,
    deprecated: { since: '1.9', removed: '1.16', replacement: `apps/v1 ${kind.kind}` },
    names: kind.names,
    schema,
    storage: {
      kind,
      toStorage: (object) => ({ ...object, apiVersion: kind.apiVersion }),
      fromStorage: (stored) => ({ ...stored, apiVersion }),
      isRelabel: () => true,
    },
    // Deleting a workload through this version keeps its dependents, as in extensions/v1beta1.
    strategy: { ...kind.strategy, ...(subresources.length > 0 ? { defaultPropagation: 'Orphan' } : {}) },
    subresources,
    columns: kind.columns,
  });
}

export const AppsV1beta2ControllerRevision: KindDefinition<v1.ControllerRevision> = olderVersionOf(
  ControllerRevision,
  schemas.ControllerRevisionSchema,
  [],
);
export type AppsV1beta2ControllerRevision = v1.ControllerRevision;

export const AppsV1beta2DaemonSet: KindDefinition<v1.DaemonSet> = olderVersionOf(DaemonSet, schemas.DaemonSetSchema, [
  status,
]);
export type AppsV1beta2DaemonSet = v1.DaemonSet;

export const AppsV1beta2Deployment: KindDefinition<v1.Deployment> = olderVersionOf(
  Deployment,
  schemas.DeploymentSchema,
  [scale, status],
);
export type AppsV1beta2Deployment = v1.Deployment;

export const AppsV1beta2ReplicaSet: KindDefinition<v1.ReplicaSet> = olderVersionOf(
  ReplicaSet,
  schemas.ReplicaSetSchema,
  [scale, status],
);
export type AppsV1beta2ReplicaSet = v1.ReplicaSet;

export const AppsV1beta2StatefulSet: KindDefinition<v1.StatefulSet> = olderVersionOf(
  StatefulSet,
  schemas.StatefulSetSchema,
  [scale, status],
);
export type AppsV1beta2StatefulSet = v1.StatefulSet;
