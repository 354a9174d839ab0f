import { defineKind, type KindDefinition } from '@keelson/core';
import { ExtensionsV1beta1Deployment } from '../../extensions/v1beta1/deployment.ts';
import { deploymentConversion, dropRollbackAnnotation } from '../../extensions/v1beta1/deployment-conversion.ts';
import { rollbackSubresource } from '../../extensions/v1beta1/rollback.ts';
import { olderScale } from '../../extensions/v1beta1/scale.ts';
import type * as old from '../../extensions/v1beta1/schema/index.ts';
import { defaultFromTemplate } from '../../extensions/v1beta1/template-defaults.ts';
import { ControllerRevision } from '../v1/controller-revision.ts';
import { Deployment } from '../v1/deployment.ts';
import type * as v1 from '../v1/schema/index.ts';
import { StatefulSet } from '../v1/stateful-set.ts';
import * as schemas from './schema.ts';

const group = 'apps';
const version = 'v1beta1';
const apiVersion = `${group}/${version}`;
const scale = olderScale(group, version, schemas.ScaleSchema);

// The casts change only types. If the defaults do not set a selector, the validation of apps/v1 reports it as missing.
const storedDeployment = Deployment as unknown as KindDefinition<old.Deployment>;
const storedSet = StatefulSet as unknown as KindDefinition<schemas.StatefulSet>;

const deprecated = (kind: string) => ({ since: '1.8', removed: '1.16', replacement: `apps/v1 ${kind}` });

/** A revision of the template of a workload, for clients of Kubernetes 1.7 to 1.15. Stored as apps/v1. */
export const AppsV1beta1ControllerRevision: KindDefinition<v1.ControllerRevision> = defineKind({
  group,
  version,
  kind: 'ControllerRevision',
  deprecated: deprecated('ControllerRevision'),
  names: ControllerRevision.names,
  schema: schemas.ControllerRevisionSchema,
  storage: {
    kind: ControllerRevision,
    toStorage: (object) => ({ ...object, apiVersion: ControllerRevision.apiVersion }),
    fromStorage: (stored) => ({ ...(stored as v1.ControllerRevision), apiVersion }),
    isRelabel: () => true,
  },
  strategy: ControllerRevision.strategy,
  columns: ControllerRevision.columns,
});
export type AppsV1beta1ControllerRevision = v1.ControllerRevision;

/**
 * A Deployment with the rules of extensions/v1beta1 (optional and mutable selector, rollback) and nearly the defaults
 * of apps/v1. Stored as apps/v1.
 */
export const AppsV1beta1Deployment: KindDefinition<old.Deployment> = defineKind({
  group,
  version,
  kind: 'Deployment',
  deprecated: deprecated('Deployment'),
  names: Deployment.names,
  schema: schemas.DeploymentSchema,
  storage: deploymentConversion(apiVersion),
  strategy: {
    ...ExtensionsV1beta1Deployment.strategy,
    default(deployment) {
      defaultFromTemplate(deployment);
      dropRollbackAnnotation(deployment);
      deployment.spec.revisionHistoryLimit ??= 2;
      storedDeployment.strategy.default?.(deployment);
    },
  },
  subresources: [
    rollbackSubresource(group, version, schemas.DeploymentRollbackSchema),
    scale,
    { type: 'status', name: 'status' },
  ],
  columns: storedDeployment.columns,
});
export type AppsV1beta1Deployment = old.Deployment;

/** The older version of apps/v1 StatefulSet: the selector is optional, pods are replaced only after their deletion. */
export const AppsV1beta1StatefulSet: KindDefinition<schemas.StatefulSet> = defineKind({
  group,
  version,
  kind: 'StatefulSet',
  deprecated: deprecated('StatefulSet'),
  names: StatefulSet.names,
  schema: schemas.StatefulSetSchema,
  storage: {
    kind: StatefulSet,
    toStorage: (object) => ({ ...object, apiVersion: StatefulSet.apiVersion }),
    fromStorage: (stored) => ({ ...(stored as schemas.StatefulSet), apiVersion }),
    isRelabel: () => true,
  },
  strategy: {
    ...storedSet.strategy,
    defaultPropagation: 'Orphan',
    default(set) {
      defaultFromTemplate(set);
      set.spec.updateStrategy ??= {};
      set.spec.updateStrategy.type ||= 'OnDelete';
      storedSet.strategy.default?.(set);
    },
  },
  subresources: [scale, { type: 'status', name: 'status' }],
  columns: storedSet.columns,
});
export type AppsV1beta1StatefulSet = schemas.StatefulSet;
