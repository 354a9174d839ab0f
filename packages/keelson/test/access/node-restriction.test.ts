import { createInProcessClient } from '@keelson/client';
import { isStatusError, type OwnerReference, type ResourceClient, StatusReason } from '@keelson/core';
import { CSINode, Lease, Node, Pod } from '@keelson/kinds';
import test, { type ExecutionContext } from 'ava';
import { type ControlPlane, createControlPlane } from '../../src/control-plane/create-control-plane.ts';

interface Opened {
  readonly plane: ControlPlane;
  readonly node: ReturnType<typeof createInProcessClient>;
}

async function open(t: ExecutionContext, name = 'system:node:n1'): Promise<Opened> {
  const plane = await createControlPlane();
  t.teardown(() => plane.close());
  const user = { name, groups: ['system:nodes', 'system:authenticated'] };
  return { plane, node: createInProcessClient(plane.registry, { user }) };
}

interface PodOptions {
  readonly nodeName?: string;
  readonly annotations?: Record<string, string>;
  readonly owners?: OwnerReference[];
  readonly spec?: Partial<Pod['spec']>;
}

const mirror = { 'kubernetes.io/config.mirror': 'hash' };
const pod = (name: string, { nodeName = 'n1', annotations = {}, owners, spec = {} }: PodOptions = {}): Pod => ({
  metadata: { name, annotations, ...(owners === undefined ? {} : { ownerReferences: owners }) },
  spec: { nodeName, containers: [{ name: 'main', image: 'app:1' }], ...spec },
});

async function registered({ node }: Opened): Promise<OwnerReference> {
  const { metadata } = await node.resource(Node).create({ metadata: { name: 'n1' } });
  return { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: metadata?.uid ?? '', controller: true };
}

async function forbidden(t: ExecutionContext, call: Promise<unknown>, why: string): Promise<void> {
  const error = await t.throwsAsync(call, undefined, why);
  t.true(isStatusError(error, StatusReason.Forbidden), String(error));
  t.true(error?.message.endsWith(`is forbidden: ${why}`), error?.message);
}

const podsOf = (client: { resource: Opened['node']['resource'] }): ResourceClient<Pod> =>
  client.resource(Pod).namespace('default');

test('a node creates, changes and deletes the Node object of its own name, and no other', async (t) => {
  const { plane, node } = await open(t);
  const nodes = node.resource(Node);
  await plane.client(Node).create({ metadata: { name: 'n2' } });
  await nodes.create({ metadata: { name: 'n1' } });
  await nodes.patch('n1', 'merge', { metadata: { annotations: { a: 'b' } } });
  const why = 'node "n1" is not allowed to modify node "n2"';
  await forbidden(t, nodes.create({ metadata: { name: 'n2' } }), why);
  await forbidden(t, nodes.patch('n2', 'merge', { metadata: { annotations: { a: 'b' } } }), why);
  await forbidden(t, nodes.patchSubresource('n2', 'status', 'merge', { status: { phase: 'Running' } }), why);
  await forbidden(t, nodes.delete('n2'), why);
  await nodes.delete('n1');
});

test('a node sets no labels that are for administrators, on create, update and through status, in dry runs too', async (t) => {
  const { node } = await open(t);
  const nodes = node.resource(Node);
  const allowed = {
    'kubernetes.io/hostname': 'n1',
    'node.kubernetes.io/instance-type': 'big',
    'x.kubelet.kubernetes.io/a': 'b',
    'example.com/rack': '7',
  };
  const refused = {
    'node-restriction.kubernetes.io/tier': 'gold',
    'x.node-restriction.kubernetes.io/tier': 'gold',
    'node-role.kubernetes.io/control-plane': '',
    'k8s.io/anything': '1',
  };
  const list = Object.keys(refused).sort().join(', ');
  await forbidden(
    t,
    nodes.create({ metadata: { name: 'n1', labels: { ...allowed, ...refused } } }),
    `node "n1" is not allowed to set the following labels: ${list}`,
  );
  await nodes.create({ metadata: { name: 'n1', labels: allowed } });
  const change = { metadata: { labels: refused } };
  const why = `is not allowed to modify labels: ${list}`;
  await forbidden(t, nodes.patch('n1', 'merge', change), why);
  await forbidden(t, nodes.patch('n1', 'merge', change, { dryRun: true }), why);
  await forbidden(t, nodes.patchSubresource('n1', 'status', 'strategic', change), why);
  const current = await nodes.get('n1');
  await forbidden(
    t,
    nodes.update({ ...current, metadata: { ...current.metadata, labels: { ...allowed, ...refused } } }),
    why,
  );
  await nodes.patch('n1', 'merge', { metadata: { labels: { 'example.com/rack': null } } });
});

test('a node does not remove a protected label', async (t) => {
  const { plane, node } = await open(t);
  await plane
    .client(Node)
    .create({ metadata: { name: 'n1', labels: { 'node-restriction.kubernetes.io/tier': 'low' } } });
  await forbidden(
    t,
    node.resource(Node).patch('n1', 'json', [{ op: 'remove', path: '/metadata/labels' }]),
    'is not allowed to modify labels: node-restriction.kubernetes.io/tier',
  );
});

test('a node chooses its taints when it registers and cannot change them afterwards', async (t) => {
  const { node } = await open(t);
  const nodes = node.resource(Node);
  await nodes.create({ metadata: { name: 'n1' }, spec: { taints: [{ key: 'new', effect: 'NoSchedule' }] } });
  const why = 'node "n1" is not allowed to modify taints';
  await forbidden(t, nodes.patch('n1', 'merge', { spec: { taints: null } }), why);
  await nodes.patchSubresource('n1', 'status', 'merge', { spec: { taints: null }, status: { phase: 'Running' } });
  t.is((await nodes.get('n1')).spec?.taints?.length, 1, 'a write of the status leaves the spec as it is');
});

test('a node has no owner references of its own choice, which would make the garbage collector delete its Node', async (t) => {
  const { node } = await open(t);
  const nodes = node.resource(Node);
  const owners = [{ apiVersion: 'v1', kind: 'Namespace', name: 'absent', uid: 'u' }];
  await forbidden(
    t,
    nodes.create({ metadata: { name: 'n1', ownerReferences: owners } }),
    'node "n1" is not allowed to set ownerReferences',
  );
  await nodes.create({ metadata: { name: 'n1' } });
  const change = { metadata: { ownerReferences: owners } };
  const why = 'node "n1" is not allowed to modify ownerReferences';
  await forbidden(t, nodes.patch('n1', 'merge', change), why);
  await forbidden(t, nodes.patchSubresource('n1', 'status', 'merge', change), why);
});

test('a node does not choose the source of its configuration', async (t) => {
  const { node } = await open(t);
  const nodes = node.resource(Node);
  const configSource = { configMap: { namespace: 'kube-system', name: 'c', kubeletConfigKey: 'k' } };
  await forbidden(
    t,
    nodes.create({ metadata: { name: 'n1' }, spec: { configSource } }),
    'node "n1" is not allowed to create pods with a non-nil configSource',
  );
  await nodes.create({ metadata: { name: 'n1' } });
  await forbidden(
    t,
    nodes.patch('n1', 'merge', { spec: { configSource } }),
    'node "n1" is not allowed to update configSource to a new non-nil configSource',
  );
});

test('a node creates mirror pods that are bound to it and owned by it, and no others', async (t) => {
  const opened = await open(t);
  const pods = podsOf(opened.node);
  const owner = await registered(opened);
  const refused: [PodOptions, string][] = [
    [{}, 'pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods'],
    [{ annotations: mirror, nodeName: 'n2' }, 'node "n1" can only create pods with spec.nodeName set to itself'],
    [{ annotations: mirror }, 'node "n1" can only create pods with an owner reference set to itself'],
    [
      { annotations: mirror, owners: [owner, { ...owner, name: 'n2', controller: false }] },
      'node "n1" can only create pods with a single owner reference set to itself',
    ],
    [
      { annotations: mirror, owners: [{ ...owner, name: 'n2' }] },
      'node "n1" can only create pods with an owner reference set to itself',
    ],
    [
      { annotations: mirror, owners: [{ ...owner, controller: false }] },
      'node "n1" can only create pods with a controller owner reference set to itself',
    ],
    [
      { annotations: mirror, owners: [{ ...owner, blockOwnerDeletion: true }] },
      'node "n1" must not set blockOwnerDeletion on an owner reference',
    ],
    [
      { annotations: mirror, owners: [{ ...owner, uid: 'other' }] },
      `node n1 UID mismatch: expected other got ${owner.uid}`,
    ],
  ];
  for (const [options, why] of refused) await forbidden(t, pods.create(pod('p', options)), why);
  await pods.create(pod('p', { annotations: mirror, owners: [{ ...owner, blockOwnerDeletion: false }] }));
  await forbidden(
    t,
    pods.patch('p', 'merge', { metadata: { labels: { a: 'b' } } }),
    'unexpected operation "UPDATE", node "n1" can only create and delete mirror pods',
  );
});

test('a mirror pod refers to no API objects', async (t) => {
  const opened = await open(t);
  const pods = podsOf(opened.node);
  const owner = await registered(opened);
  const container = { name: 'main', image: 'app:1' };
  const volume = (source: object): Partial<Pod['spec']> => ({ volumes: [{ name: 'v', ...source }] });
  const projected = (source: object) => volume({ projected: { sources: [source] } });
  const refused: [Partial<Pod['spec']>, string][] = [
    [{ serviceAccountName: 'a' }, 'serviceaccounts'],
    [{ serviceAccount: 'a' }, 'serviceaccounts'],
    [{ imagePullSecrets: [{ name: 's' }] }, 'secrets'],
    [{ initContainers: [{ ...container, name: 'i', envFrom: [{ secretRef: { name: 's' } }] }] }, 'secrets'],
    [
      { containers: [{ ...container, env: [{ name: 'E', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] }] },
      'secrets',
    ],
    [volume({ secret: { secretName: 's' } }), 'secrets'],
    [volume({ flexVolume: { driver: 'a/b', secretRef: { name: 's' } } }), 'secrets'],
    [projected({ secret: { name: 's' } }), 'secrets'],
    [{ containers: [{ ...container, envFrom: [{ configMapRef: { name: 'c' } }] }] }, 'configmaps'],
    [volume({ configMap: { name: 'c' } }), 'configmaps'],
    [projected({ configMap: { name: 'c' } }), 'configmaps'],
    [projected({ serviceAccountToken: { path: 't' } }), 'serviceaccounts (via projected volumes)'],
    [volume({ persistentVolumeClaim: { claimName: 'c' } }), 'persistentvolumeclaims'],
    [volume({ csi: { driver: 'd.example.com' } }), 'csidrivers (via CSI volumes)'],
  ];
  for (const [spec, reference] of refused) {
    await forbidden(
      t,
      pods.create(pod('p', { annotations: mirror, owners: [owner], spec })),
      `node "n1" can not create pods that reference ${reference}`,
    );
  }
  const downward = { downwardAPI: { items: [{ path: 'n', fieldRef: { fieldPath: 'metadata.name' } }] } };
  const volumes = [
    { name: 'a', emptyDir: {} },
    { name: 'b', hostPath: { path: '/x' } },
    { name: 'c', projected: { sources: [downward] } },
    { name: 'd' },
  ];
  await pods.create(pod('p', { annotations: mirror, owners: [owner], spec: { volumes } }));
});

test('a node reports on, evicts and deletes the pods that are bound to it, and no others', async (t) => {
  const { plane, node } = await open(t);
  const [all, own] = [plane.client(Pod).namespace('default'), podsOf(node)];
  for (const name of ['here', 'evicted']) await all.create(pod(name));
  await all.create(pod('there', { nodeName: 'n2' }));
  const report = { status: { phase: 'Running' } };
  t.like(await own.patchSubresource('here', 'status', 'merge', report), report);
  await own.delete('here', { gracePeriodSeconds: 0 });
  const evict = (name: string) => {
    const deleteOptions = { gracePeriodSeconds: 0 };
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name }, deleteOptions };
    return own.createSubresource(name, 'eviction', eviction);
  };
  await evict('evicted');
  await forbidden(
    t,
    own.patchSubresource('there', 'status', 'merge', report),
    'node "n1" can only update pod status for pods with spec.nodeName set to itself',
  );
  await forbidden(t, evict('there'), 'node n1 can only evict pods with spec.nodeName set to itself');
  await forbidden(
    t,
    own.delete('there', { gracePeriodSeconds: 0 }),
    'node "n1" can only delete pods with spec.nodeName set to itself',
  );
  t.deepEqual(
    (await all.list()).items.map(({ metadata }) => metadata?.name),
    ['there'],
  );
});

test('a node changes neither labels nor claims of a pod through its status, and binds no pods', async (t) => {
  const { plane, node } = await open(t);
  const all = plane.client(Pod).namespace('default');
  await all.create(pod('here', { spec: { resourceClaims: [{ name: 'c', resourceClaimName: 'c' }] } }));
  await all.create({ metadata: { name: 'free' }, spec: { containers: [{ name: 'main', image: 'app:1' }] } });
  const own = podsOf(node);
  await forbidden(
    t,
    own.patchSubresource('here', 'status', 'merge', { metadata: { labels: { app: 'web' } } }),
    'node "n1" cannot update labels through pod status',
  );
  await forbidden(
    t,
    own.patchSubresource('here', 'status', 'merge', { status: { resourceClaimStatuses: [{ name: 'c' }] } }),
    'node "n1" cannot update resource claim statues',
  );
  const binding = {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { name: 'free' },
    target: { kind: 'Node', name: 'n1' },
  };
  await forbidden(
    t,
    own.createSubresource('free', 'binding', binding),
    `unexpected pod subresource "binding", only 'status' and 'eviction' are allowed`,
  );
});

test('a node writes the Lease of its own name in kube-node-lease, and no other; the same for CSINodes', async (t) => {
  const { plane, node } = await open(t);
  const leases = node.resource(Lease);
  const elsewhere = 'can only access leases in the "kube-node-lease" system namespace';
  const foreign = 'can only access node lease with the same name as the requesting node';
  await leases.namespace('kube-node-lease').create({ metadata: { name: 'n1' }, spec: { holderIdentity: 'n1' } });
  await forbidden(t, leases.namespace('kube-node-lease').create({ metadata: { name: 'n2' } }), foreign);
  await forbidden(t, leases.namespace('default').create({ metadata: { name: 'n1' } }), elsewhere);
  await plane
    .client(Lease)
    .namespace('kube-node-lease')
    .create({ metadata: { name: 'n2' } });
  const change = { spec: { holderIdentity: 'n1' } };
  await forbidden(t, leases.namespace('kube-node-lease').patch('n2', 'merge', change), foreign);
  await forbidden(t, leases.namespace('kube-node-lease').delete('n2'), foreign);
  await node.resource(CSINode).create({ metadata: { name: 'n1' }, spec: { drivers: [] } });
  await forbidden(
    t,
    node.resource(CSINode).create({ metadata: { name: 'n2' }, spec: { drivers: [] } }),
    'can only access CSINode with the same name as the requesting node',
  );
});

test('a user of the group of nodes whose name contains no node is refused', async (t) => {
  const { node } = await open(t, 'system:node:');
  await forbidden(
    t,
    node.resource(Node).create({ metadata: { name: 'n1' } }),
    'could not determine node from user "system:node:"',
  );
});
