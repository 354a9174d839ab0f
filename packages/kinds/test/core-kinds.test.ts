import { type KindDefinition, systemUser } from '@keelson/core';
import test from 'ava';
import { ConfigMap, Event, Lease, Namespace, Node, Secret, ServiceAccount } from '../src/index.ts';
import { contextOf, create, defaulted, row, update, updateStatus } from './helpers/writes.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');
const mebibyte = 1024 * 1024;
const object = (fields: Record<string, unknown>, metadata: Record<string, unknown> = {}) => ({
  metadata: { name: 'x', namespace: 'default', ...metadata },
  ...fields,
});

type Case = readonly [title: string, fields: Record<string, unknown>, causes: readonly string[]];

function table(kind: KindDefinition, cases: readonly Case[]): void {
  for (const [title, fields, causes] of cases) {
    test(`${kind.kind} with ${title}`, (t) => {
      t.deepEqual(create(kind, object(fields)).causes, causes);
    });
  }
}

table(ConfigMap, [
  ['nothing', {}, []],
  ['text and bytes', { data: { 'a.b_c-D': '' }, binaryData: { b: base64('x') } }, []],
  ['a key with a slash', { data: { 'a/b': '' } }, ['data[a/b] Invalid']],
  ['a key of dots', { binaryData: { '..': '' } }, ['binaryData[..] Invalid']],
  ['a key in both', { data: { a: '' }, binaryData: { a: '' } }, ['data[a] Invalid']],
  ['exactly 1 MiB', { data: { a: 'x'.repeat(mebibyte) } }, []],
  [
    'more than 1 MiB, half of it binary',
    { data: { a: 'x'.repeat(mebibyte / 2) }, binaryData: { b: base64('x'.repeat(mebibyte / 2 + 1)) } },
    ['data TooLong'],
  ],
  ['more than 1 MiB of letters of two bytes', { data: { a: 'é'.repeat(mebibyte / 2 + 1) } }, ['data TooLong']],
]);

test('immutable data cannot be changed, nor made mutable', (t) => {
  const old = create(ConfigMap, object({ data: { a: '1' }, immutable: true })).object;
  t.deepEqual(
    update(ConfigMap, old, (map) => {
      map.metadata!.labels = { a: 'b' };
    }).causes,
    [],
  );
  t.deepEqual(
    update(ConfigMap, old, (map) => {
      map.data = { a: '2' };
    }).causes,
    ['data Forbidden'],
  );
  t.deepEqual(
    update(ConfigMap, old, (map) => {
      map.immutable = false;
    }).causes,
    ['immutable Forbidden'],
  );
  t.deepEqual(
    update(ConfigMap, old, (map) => {
      map.binaryData = { b: 'eA==' };
    }).causes,
    ['binaryData Forbidden'],
  );
});

table(Secret, [
  ['a key with a blank', { data: { 'a b': '' } }, ['data[a b] Invalid']],
  ['more than 1 MiB', { stringData: { a: 'x'.repeat(mebibyte + 1) } }, ['data TooLong']],
  [
    'a token without account',
    { type: 'kubernetes.io/service-account-token' },
    ['metadata.annotations[kubernetes.io/service-account.name] Required'],
  ],
  ['a docker config', { type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': '{}' } }, []],
  ['no docker config', { type: 'kubernetes.io/dockerconfigjson' }, ['data[.dockerconfigjson] Required']],
  [
    'a docker config that is no JSON',
    { type: 'kubernetes.io/dockercfg', stringData: { '.dockercfg': '{' } },
    ['data[.dockercfg] Invalid'],
  ],
  ['a user without password', { type: 'kubernetes.io/basic-auth', stringData: { username: 'u' } }, []],
  [
    'neither user nor password',
    { type: 'kubernetes.io/basic-auth' },
    ['data[username] Required', 'data[password] Required'],
  ],
  [
    'an empty SSH key',
    { type: 'kubernetes.io/ssh-auth', data: { 'ssh-privatekey': '' } },
    ['data[ssh-privatekey] Required'],
  ],
  [
    'a docker config that is no object',
    { type: 'kubernetes.io/dockercfg', stringData: { '.dockercfg': '[]' } },
    ['data[.dockercfg] Invalid'],
  ],
  ['no SSH key', { type: 'kubernetes.io/ssh-auth' }, ['data[ssh-privatekey] Required']],
  ['half of TLS', { type: 'kubernetes.io/tls', stringData: { 'tls.crt': 'x' } }, ['data[tls.key] Required']],
  ['a type of its own', { type: 'example.com/mine' }, []],
]);

test('stringData is merged over the data and never stored', (t) => {
  const { object: secret } = create(
    Secret,
    object({ data: { a: base64('1'), b: base64('2') }, stringData: { b: 'ü', c: '' } }),
  );
  t.deepEqual(secret.data, { a: base64('1'), b: base64('ü'), c: '' });
  t.false('stringData' in secret);
  t.is(secret.type, 'Opaque');
  t.deepEqual(row(Secret, secret), { Name: 'x', Type: 'Opaque', Data: 3, Age: '<unknown>' });
});

test('the key __proto__ of stringData is ordinary data', (t) => {
  const fields = JSON.parse('{"stringData":{"__proto__":"x"}}') as Record<string, unknown>;
  const { object: secret, causes } = create(Secret, object(fields));
  t.deepEqual(causes, []);
  t.deepEqual(Object.keys(secret.data ?? {}), ['__proto__']);
  t.is(({} as Record<string, unknown>)['x'], undefined);
});

test('the type of a secret cannot be changed, and contents never appear in messages', (t) => {
  const old = create(Secret, object({ type: 'a/b' })).object;
  t.deepEqual(
    update(Secret, old, (secret) => {
      secret.type = 'c/d';
    }).causes,
    ['type Invalid'],
  );
  const made = defaulted(Secret, object({ type: 'kubernetes.io/dockercfg', stringData: { '.dockercfg': 'hush' } }));
  const [error] = Secret.strategy.validate?.(made) ?? [];
  t.false(error?.message.includes('hush'));
});

test('service account tokens are exported only by an exact export', (t) => {
  const token = create(Secret, object({ type: 'kubernetes.io/service-account-token' })).object;
  t.throws(() => Secret.strategy.export?.(token, false));
  t.notThrows(() => Secret.strategy.export?.(token, true));
});

test('a new namespace is Active, has its finalizer and is labelled with its name', (t) => {
  const { object: namespace, causes } = create(Namespace, {
    metadata: { name: 'a', labels: { x: 'y' } },
    status: { phase: 'Terminating' },
  });
  t.deepEqual(causes, []);
  t.deepEqual(namespace.metadata?.labels, { x: 'y', 'kubernetes.io/metadata.name': 'a' });
  t.deepEqual(namespace.spec, { finalizers: ['kubernetes'] });
  t.deepEqual(namespace.status, { phase: 'Active' });
  t.true(Namespace.strategy.heldBack?.(namespace));
});

test('a status of a namespace without a phase is Active', (t) => {
  const { object } = create(Namespace, { metadata: { name: 'a' } });
  const written = updateStatus(Namespace, object, (namespace) => {
    delete namespace.status;
  });
  t.deepEqual(written.messages, []);
  t.deepEqual(written.object.status, { phase: 'Active' });
});

test('only finalize changes the finalizers of a namespace', (t) => {
  const old = create(Namespace, { metadata: { name: 'a' } }).object;
  const written = update(Namespace, old, (namespace) => {
    namespace.spec = {};
    namespace.metadata!.labels = {};
  }).object;
  t.deepEqual(written.spec, { finalizers: ['kubernetes'] });
  t.is(written.metadata?.labels?.['kubernetes.io/metadata.name'], 'a');
  const [finalize] = Namespace.subresources.filter(({ type }) => type === 'replace');
  if (finalize?.type !== 'replace') throw new Error('no finalize');
  finalize.apply(written, { spec: { finalizers: [] }, status: { phase: 'x' } }, contextOf(systemUser));
  t.false(Namespace.strategy.heldBack?.(written));
  t.is(written.status?.phase, 'Active');
});

test('a finalizer of a namespace is a qualified name', (t) => {
  t.deepEqual(create(Namespace, { metadata: { name: 'a' }, spec: { finalizers: ['x.io/y'] } }).causes, []);
  t.deepEqual(create(Namespace, { metadata: { name: 'a' }, spec: { finalizers: ['mine'] } }).causes, [
    'spec.finalizers[0] Invalid',
  ]);
});

test('deletion makes a namespace Terminating; default, kube-system and kube-public cannot be deleted', (t) => {
  const namespace = create(Namespace, { metadata: { name: 'a' } }).object;
  namespace.metadata!.deletionTimestamp = '2026-01-02T12:00:00Z';
  Namespace.strategy.beginDeletion?.(namespace, undefined as never);
  t.is(namespace.status?.phase, 'Terminating');
  t.deepEqual(
    updateStatus(Namespace, namespace, (it) => {
      it.status = { phase: 'Active' };
    }).causes,
    ['status.phase Invalid'],
  );
  for (const name of ['default', 'kube-system', 'kube-public']) t.truthy(Namespace.strategy.undeletable?.(name));
  t.is(Namespace.strategy.undeletable?.('a'), undefined);
});

const about = (namespace: string | undefined) => ({
  involvedObject: { kind: 'Pod', name: 'p', ...(namespace ? { namespace } : {}) },
});
table(Event, [
  ['an object of its namespace', about('default'), []],
  ['an object of another namespace', about('other'), ['involvedObject.namespace Invalid']],
  ['a cluster-wide object in default', about(undefined), []],
  [
    'a time but no reporter',
    { ...about('default'), eventTime: '2026-01-02T12:00:00.000001Z' },
    ['reportingController Required', 'reportingInstance Required', 'action Required', 'reason Required'],
  ],
]);

test('events of a cluster-scoped object are in the namespace default', (t) => {
  t.deepEqual(create(Event, object(about(undefined), { namespace: 'other' })).causes, [
    'involvedObject.namespace Invalid',
  ]);
});

test('the table row of an event and its time to live', (t) => {
  const { object: event } = create(Event, {
    ...object({
      involvedObject: { kind: 'Pod', name: 'p', namespace: 'default', fieldPath: 'spec.containers{app}' },
      reason: 'BackOff',
      message: ' again \n',
      type: 'Warning',
      count: 7,
      source: { component: 'kubelet', host: 'n1' },
      firstTimestamp: '2026-01-02T11:00:00Z',
      lastTimestamp: '2026-01-02T11:59:00Z',
    }),
  });
  t.deepEqual(row(Event, event), {
    'Last Seen': '60s',
    Type: 'Warning',
    Reason: 'BackOff',
    Object: 'pod/p',
    Subobject: 'spec.containers{app}',
    Source: 'kubelet, n1',
    Message: 'again',
    'First Seen': '60m',
    Count: 7,
    Name: 'x',
  });
  t.is(Event.selectableFields.get('source')?.(event), 'kubelet');
  t.is(Event.strategy.ttlMs?.(event), 3_600_000);
});

table(Node, [
  [
    'taints',
    {
      spec: {
        taints: [
          { key: 'a', effect: 'NoSchedule' },
          { key: 'a', effect: 'NoExecute', value: 'b' },
        ],
      },
    },
    [],
  ],
  [
    'a taint twice',
    {
      spec: {
        taints: [
          { key: 'a', effect: 'NoSchedule' },
          { key: 'a', effect: 'NoSchedule', value: 'b' },
        ],
      },
    },
    ['metadata.taints[1] Duplicate'],
  ],
  [
    'an unknown effect',
    { spec: { taints: [{ key: 'a', effect: 'Evict' }] } },
    ['metadata.taints[0].effect NotSupported'],
  ],
  ['two ranges of one family', { spec: { podCIDRs: ['10.0.0.0/8', '11.0.0.0/8'] } }, ['spec.podCIDRs Invalid']],
  ['a range of each family', { spec: { podCIDRs: ['10.0.0.0/8', 'fd00::/8'] } }, []],
  [
    'half a device',
    { status: { capacity: { 'a.example/gpu': '500m' }, allocatable: { cpu: '500m' } } },
    ['status.capacity.a.example/gpu Invalid'],
  ],
  ['a bad range', { spec: { podCIDR: '10.0.0.0' } }, ['spec.podCIDRs[0] Invalid']],
  [
    'a negative amount',
    { status: { capacity: { cpu: '-1' } } },
    ['status.capacity.cpu Invalid', 'status.allocatable.cpu Invalid'],
  ],
  [
    'an address twice, which only an update rejects',
    {
      status: {
        addresses: [
          { type: 'InternalIP', address: '1' },
          { type: 'InternalIP', address: '1' },
        ],
      },
    },
    [],
  ],
]);

test('a node is created with its status; its allocatable resources are its capacity by default', (t) => {
  const { object: node } = create(Node, {
    metadata: { name: 'n' },
    spec: { podCIDR: '10.0.0.0/24' },
    status: { capacity: { cpu: '4' } },
  });
  t.deepEqual(node.status?.allocatable, { cpu: '4' });
  t.deepEqual(node.spec?.podCIDRs, ['10.0.0.0/24']);
  t.deepEqual(
    update(Node, node, (it) => {
      it.spec!.taints = [{ key: 'a', effect: 'NoSchedule' }];
    }).causes,
    [],
  );
  const moved = update(Node, node, (it) => {
    it.spec = { podCIDR: '10.0.1.0/24' };
  });
  t.deepEqual(moved.causes, ['spec.podCIDRs Forbidden']);
});

test('addresses and the external id of a node are checked when it is changed, and podCIDR is the first range', (t) => {
  const address = { type: 'InternalIP', address: '192.0.2.1' };
  const spec = { externalID: 'a', podCIDR: '10.0.0.0/24', podCIDRs: ['10.0.1.0/24'] };
  const { object, causes } = create(Node, { metadata: { name: 'n' }, spec, status: { addresses: [address, address] } });
  t.deepEqual([causes, object.spec?.podCIDRs], [[], ['10.0.0.0/24']]);
  const moved = update(Node, object, (node) => {
    node.spec = { ...node.spec, externalID: 'b' };
  });
  t.deepEqual(moved.causes, ['status.addresses[1] Duplicate', 'spec.externalID Forbidden']);
});

test('the table row of a node', (t) => {
  const { object: node } = create(Node, {
    metadata: { name: 'n', labels: { 'node-role.kubernetes.io/worker': '', 'kubernetes.io/role': 'edge' } },
    spec: { unschedulable: true },
    status: {
      conditions: [{ type: 'Ready', status: 'True' }],
      addresses: [{ type: 'InternalIP', address: '10.0.0.5' }],
      nodeInfo: { kubeletVersion: 'v1.0.0', osImage: 'Linux' },
    },
  });
  t.like(row(Node, node), {
    Status: 'Ready,SchedulingDisabled',
    Roles: 'edge,worker',
    Version: 'v1.0.0',
    'Internal-IP': '10.0.0.5',
    'External-IP': '<none>',
    'OS-Image': 'Linux',
    'Kernel-Version': '<unknown>',
  });
  t.is(Node.selectableFields.get('spec.unschedulable')?.(node), 'true');
  t.is(row(Node, { metadata: { name: 'm' } })['Status'], 'Unknown');
});

test('export omits the status of a node and the tokens of a service account', (t) => {
  const { object: node } = create(Node, { metadata: { name: 'n' }, status: { capacity: { cpu: '4' } } });
  Node.strategy.export?.(node, true);
  t.is(node.status?.capacity?.['cpu'], '4');
  Node.strategy.export?.(node, false);
  t.deepEqual(node.status, {});
  const { object: account } = create(ServiceAccount, object({ secrets: [{ name: 'x-token-abc' }, { name: 'mine' }] }));
  ServiceAccount.strategy.export?.(account, false);
  t.deepEqual(account.secrets, [{ name: 'mine' }]);
});

test('a service account keeps only the names of its secrets', (t) => {
  const { object: account } = create(
    ServiceAccount,
    object({ secrets: [{ name: 's', uid: 'u', namespace: 'other' }] }),
  );
  t.deepEqual(account.secrets, [{ name: 's' }]);
  t.is(row(ServiceAccount, account)['Secrets'], 1);
});

table(Lease, [
  ['a holder', { spec: { holderIdentity: 'me', leaseDurationSeconds: 15, leaseTransitions: 0 } }, []],
  ['no time', { spec: { leaseDurationSeconds: 0 } }, ['spec.leaseDurationSeconds Invalid']],
  ['negative changes', { spec: { leaseTransitions: -1 } }, ['spec.leaseTransitions Invalid']],
]);
