import { defineKind } from '../../src/kind/define-kind.ts';
import { optional, required, s } from '../../src/kind/schema.ts';
import type { SubresourceDefinition } from '../../src/kind/subresource.ts';
import type { KubeObject } from '../../src/meta/types.ts';

const spec = s.message('test.v1.Spec', 'Intended state.', { replicas: optional(1, s.int32(), 'How many.') });
const workload = s.message('test.v1.Workload', 'A workload.', {
  spec: optional(2, spec, 'Intended state.'),
  status: optional(3, spec, 'Observed state.'),
});
const data = s.message('test.v1.Data', 'Some data.', { data: optional(2, s.map(s.string()), 'Values by key.') });
const target = s.message('test.v1.Target', 'Names a node.', { target: required(2, s.string(), 'The node.') });
const scaleBody = s.message('test.v1.Scale', 'Size of something.', { spec: optional(2, spec, 'Wished size.') });

const status: SubresourceDefinition = { type: 'status', name: 'status' };

function scale(group: string, version: string): SubresourceDefinition {
  return {
    type: 'projection',
    name: 'scale',
    bodyKind: { group, version, kind: 'Scale' },
    schema: scaleBody,
    read: (parent: KubeObject) => parent,
    write: () => {},
  };
}

function action(name: string, group: string, version: string, kind: string): SubresourceDefinition {
  return {
    type: 'action',
    name,
    bodyKind: { group, version, kind },
    schema: target,
    run: async ({ body }) => ({ code: 201, object: body }),
  };
}

/** Kinds in the shapes of the built-in ones: enough of each for what documents derive from it. */
export const configMap = defineKind({
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  names: { shortNames: ['cm'] },
  schema: data,
  strategy: {},
});
export const pod = defineKind({
  group: '',
  version: 'v1',
  kind: 'Pod',
  names: { shortNames: ['po'], categories: ['all'] },
  schema: workload,
  subresources: [status, action('eviction', 'policy', 'v1', 'Eviction'), action('binding', '', 'v1', 'Binding')],
  strategy: { deleteReturnsObject: true },
});
export const namespace = defineKind({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  scope: 'Cluster',
  names: { shortNames: ['ns'] },
  verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
  schema: workload,
  subresources: [status, { type: 'replace', name: 'finalize', apply: () => {} }],
});
export const appsDeployment = defineKind({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  names: { shortNames: ['deploy'], categories: ['all'] },
  schema: workload,
  subresources: [status, scale('autoscaling', 'v1')],
});
export const extensionsDeployment = defineKind({
  group: 'extensions',
  version: 'v1beta1',
  kind: 'Deployment',
  names: { shortNames: ['deploy'], categories: ['all'] },
  schema: workload,
  subresources: [
    status,
    scale('extensions', 'v1beta1'),
    action('rollback', 'extensions', 'v1beta1', 'DeploymentRollback'),
  ],
  storage: {
    kind: appsDeployment,
    toStorage: (object) => ({ ...object, apiVersion: 'apps/v1' }),
    fromStorage: (stored) => ({ ...stored, apiVersion: 'extensions/v1beta1' }),
    isRelabel: () => true,
  },
});
export const lease = defineKind({ group: 'coordination.k8s.io', version: 'v1', kind: 'Lease', schema: data });
/** Declared by a team, without struct schema. */
export const cronTab = defineKind({
  group: 'stable.example.com',
  version: 'v1alpha1',
  kind: 'CronTab',
  scope: 'Cluster',
  names: { shortNames: ['ct'] },
  schema: s.message('example.CronTab', 'A job table.', { spec: optional(undefined, s.any(), 'Anything.') }),
  structural: false,
});

/** In an order in which nothing is where discovery must put it. */
export const sampleKinds = [cronTab, extensionsDeployment, pod, namespace, lease, configMap, appsDeployment];
