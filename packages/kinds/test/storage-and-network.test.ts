import type { KindDefinition } from '@keelson/core';
import test from 'ava';
import {
  CSIDriver,
  CSINode,
  CSIStorageCapacity,
  IngressClass,
  NetworkPolicy,
  PersistentVolume,
  PersistentVolumeClaim,
  RuntimeClass,
  StorageClass,
  VolumeAttachment,
} from '../src/index.ts';
import { create, now, row, update, updateStatus } from './helpers/writes.ts';

const metadata = { name: 'x', namespace: 'default' };

type Case = readonly [title: string, fields: Record<string, unknown>, messages: readonly string[]];

function table(kind: KindDefinition, cases: readonly Case[]): void {
  for (const [title, fields, messages] of cases) {
    test(`${kind.kind} with ${title}`, (t) => {
      t.deepEqual(create(kind, { metadata, ...fields }).messages, messages);
    });
  }
}

const volume = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/data' } };
const csi = { driver: 'csi.example.com', volumeHandle: '1' };
const { hostPath: _, ...sourceless } = volume;

table(PersistentVolume, [
  ['a folder', { spec: volume }, []],
  [
    'nothing',
    { spec: {} },
    [
      'spec.accessModes: Required value',
      'spec.capacity: Required value',
      'spec.capacity: Unsupported value: {}: supported values: "storage"',
      'spec: Required value: must specify a volume type',
    ],
  ],
  ['two sources', { spec: { ...volume, csi } }, ['spec.csi: Forbidden: may not specify more than 1 volume type']],
  [
    'a local disk without affinity',
    { spec: { ...sourceless, local: { path: '/a/../b' } } },
    [
      'spec.local.path: Invalid value: "/a/../b": must not contain \'..\'',
      'spec.nodeAffinity: Required value: Local volume requires node affinity',
    ],
  ],
  [
    'an incomplete CSI source',
    { spec: { ...sourceless, csi: { driver: 'A b', volumeHandle: '', nodePublishSecretRef: { name: 's' } } } },
    [
      'spec.csi.driver: Invalid value: "A b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric ' +
        "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used " +
        "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      'spec.csi.volumeHandle: Required value',
      'spec.csi.nodePublishSecretRef.namespace: Required value',
    ],
  ],
  [
    'modes that exclude each other, and no size',
    { spec: { ...volume, capacity: { storage: '0' }, accessModes: ['ReadWriteOncePod', 'ReadOnlyMany'] } },
    [
      'spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes',
      'spec.capacity[storage]: Invalid value: "0": must be greater than zero',
    ],
  ],
  [
    'recycling of the root',
    { spec: { ...volume, hostPath: { path: '/' }, persistentVolumeReclaimPolicy: 'Recycle' } },
    ["spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"],
  ],
]);

test('source and volume mode of a PersistentVolume are immutable, and the time of a phase change is recorded', (t) => {
  const { object } = create(PersistentVolume, { metadata, spec: volume });
  t.is(object.spec.persistentVolumeReclaimPolicy, 'Retain');
  t.is(object.spec.volumeMode, 'Filesystem');
  t.deepEqual(object.status, { phase: 'Pending', lastPhaseTransitionTime: '2026-01-02T12:00:00Z' });
  const moved = update(PersistentVolume, object, ({ spec }) => {
    spec.hostPath = { path: '/other' };
    spec.volumeMode = 'Block';
  });
  t.deepEqual(moved.messages, [
    'spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation',
    'volumeMode: Invalid value: "Block": field is immutable',
  ]);
  const older = { ...object, status: { phase: 'Pending', lastPhaseTransitionTime: '2025-01-01T00:00:00Z' } };
  const bound = updateStatus(PersistentVolume, older, (one) => Object.assign(one.status ?? {}, { phase: 'Bound' }));
  t.is(bound.object.status?.lastPhaseTransitionTime, `${now.toISOString().slice(0, 19)}Z`);
  const kept = updateStatus(PersistentVolume, older, (one) => Object.assign(one.status ?? {}, { message: 'x' }));
  t.is(kept.object.status?.lastPhaseTransitionTime, '2025-01-01T00:00:00Z');
});

test('a status of a volume or claim without a phase is Pending', (t) => {
  const withoutStatus = (one: { status?: unknown }) => {
    delete one.status;
  };
  const { object: stored } = create(PersistentVolume, { metadata, spec: volume });
  t.is(updateStatus(PersistentVolume, stored, withoutStatus).object.status?.phase, 'Pending');
  const { object: bound } = create(PersistentVolumeClaim, { metadata, spec: claim });
  t.is(updateStatus(PersistentVolumeClaim, bound, withoutStatus).object.status?.phase, 'Pending');
});

const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };

table(PersistentVolumeClaim, [
  ['a size', { spec: claim }, []],
  [
    'nothing',
    { spec: {} },
    ['spec.accessModes: Required value: at least 1 access mode is required', 'spec.resources[storage]: Required value'],
  ],
  [
    'an unknown mode and no size',
    { spec: { ...claim, accessModes: ['Shared'], resources: { requests: { storage: '0' } } } },
    [
      'spec.accessModes: Unsupported value: "Shared": supported values: "ReadOnlyMany", "ReadWriteMany", ' +
        '"ReadWriteOnce", "ReadWriteOncePod"',
      'spec.resources[storage]: Invalid value: "0": must be greater than zero',
    ],
  ],
  [
    'an incomplete source',
    { spec: { ...claim, dataSourceRef: { kind: 'Disk', name: '' } } },
    [
      'spec.dataSource.name: Required value',
      'spec.dataSource: Invalid value: "Disk": must be \'PersistentVolumeClaim\' when referencing the default apiGroup',
      'spec.dataSourceRef.name: Required value',
      'spec.dataSourceRef: Invalid value: "Disk": must be \'PersistentVolumeClaim\' when referencing the default apiGroup',
    ],
  ],
]);

test('the spec of a claim cannot be changed, except for one binding and the expansion of a bound claim', (t) => {
  const { object } = create(PersistentVolumeClaim, { metadata, spec: claim });
  t.deepEqual(object.status, { phase: 'Pending' });
  const immutable =
    'spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for ' +
    'bound claims';
  const resize = (size: string) => (one: PersistentVolumeClaim) => {
    one.spec.resources = { requests: { storage: size } };
  };
  t.deepEqual(update(PersistentVolumeClaim, object, resize('2Gi')).messages, [immutable]);
  const assign = (fields: object) => (one: PersistentVolumeClaim) => Object.assign(one.spec, fields);
  const placed = update(PersistentVolumeClaim, object, assign({ volumeName: 'v', storageClassName: 'fast' }));
  t.deepEqual(placed.messages, []);
  t.deepEqual(update(PersistentVolumeClaim, placed.object, assign({ volumeName: 'w' })).messages, [immutable]);
  t.deepEqual(update(PersistentVolumeClaim, placed.object, assign({ storageClassName: 'slow' })).messages, [immutable]);
  const bound = { ...placed.object, status: { phase: 'Bound', capacity: { storage: '1Gi' } } };
  t.deepEqual(update(PersistentVolumeClaim, bound, resize('2Gi')).messages, []);
  t.deepEqual(update(PersistentVolumeClaim, bound, resize('512Mi')).messages, [
    'spec.resources.requests.storage: Forbidden: field can not be less than status.capacity',
  ]);
  t.like(row(PersistentVolumeClaim, bound), { Volume: 'v', Capacity: '1Gi', StorageClass: 'fast', Status: 'Bound' });
});

test('a source of a claim in another namespace is dropped', (t) => {
  const dataSourceRef = { kind: 'PersistentVolumeClaim', name: 'a', namespace: 'other' };
  const { causes, object } = create(PersistentVolumeClaim, { metadata, spec: { ...claim, dataSourceRef } });
  t.deepEqual([causes, object.spec.dataSourceRef, object.spec.dataSource], [[], undefined, undefined]);
});

test('a status write of a VolumeAttachment changes no labels, and a CSIDriver has a generation after a change', (t) => {
  const spec = { attacher: 'a', nodeName: 'n', source: { persistentVolumeName: 'v' } };
  const attached = create(VolumeAttachment, { metadata: { name: 'x', labels: { a: 'b' } }, spec }).object;
  const written = updateStatus(VolumeAttachment, attached, (one) => {
    one.metadata = { ...one.metadata, labels: { a: 'c' }, annotations: { a: 'b' } };
  });
  t.deepEqual(written.object.metadata, { name: 'x', labels: { a: 'b' } });
  const driver = create(CSIDriver, { metadata: { name: 'x' }, spec: {} }).object;
  t.is(driver.metadata?.generation, undefined);
  const changed = update(CSIDriver, driver, (one) => {
    one.spec.podInfoOnMount = true;
  });
  t.is(changed.object.metadata?.generation, 1);
  t.is(update(CSIDriver, driver, () => {}).object.metadata?.generation, undefined);
});

test('dataSource and dataSourceRef of a claim are synchronized; other kinds of sources need dataSourceRef', (t) => {
  const source = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 's' };
  const specOf = (fields: object) =>
    create(PersistentVolumeClaim, { metadata, spec: { ...claim, ...fields } }).object.spec;
  t.deepEqual(specOf({ dataSource: source }).dataSourceRef, source);
  t.deepEqual(specOf({ dataSourceRef: source }).dataSource, source);
  t.is(specOf({ dataSource: { ...source, kind: 'Backup' } }).dataSource, undefined);
});

table(StorageClass, [
  ['a provisioner', { provisioner: 'Example.com/disk' }, []],
  ['no provisioner', {}, ['provisioner: Required value']],
  [
    'unknown modes',
    { provisioner: 'a', reclaimPolicy: 'Recycle', volumeBindingMode: 'Late' },
    [
      'reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"',
      'volumeBindingMode: Unsupported value: "Late": supported values: "Immediate", "WaitForFirstConsumer"',
    ],
  ],
  [
    'repeated topologies',
    {
      provisioner: 'a',
      allowedTopologies: [
        { matchLabelExpressions: [{ key: 'zone', values: ['a', 'b'] }] },
        { matchLabelExpressions: [{ key: 'zone', values: ['b', 'a'] }] },
      ],
    },
    ['allowedTopologies[1].matchLabelExpressions: Duplicate value: ""'],
  ],
]);

test('a StorageClass has defaults, cannot be changed, and the table marks the default class', (t) => {
  const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
  const { object } = create(StorageClass, { metadata: { name: 'x', annotations }, provisioner: 'a' });
  t.like(object, { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' });
  t.is(row(StorageClass, object)['Name'], 'x (default)');
  const changed = { parameters: { a: 'b' }, provisioner: 'b', reclaimPolicy: 'Retain', allowVolumeExpansion: true };
  t.deepEqual(update(StorageClass, object, (one) => Object.assign(one, changed)).messages, [
    'parameters: Forbidden: updates to parameters are forbidden.',
    'provisioner: Forbidden: updates to provisioner are forbidden.',
    'reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden.',
  ]);
});

const attachment = { attacher: 'csi.example.com', nodeName: 'n1', source: { persistentVolumeName: 'v' } };

table(VolumeAttachment, [
  ['a volume', { spec: attachment }, []],
  [
    'no volume',
    { spec: { ...attachment, source: {} } },
    ['spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName'],
  ],
  [
    'an inline volume with a class',
    {
      spec: {
        ...attachment,
        source: { inlineVolumeSpec: { accessModes: ['ReadWriteOnce'], storageClassName: 'a', csi } },
      },
    },
    ['spec.source.inlineVolumeSpec.storageClassName: Forbidden: may not be specified in the context of inline volumes'],
  ],
]);

table(CSIDriver, [
  ['defaults', { spec: {} }, []],
  [
    'repeated tokens that are too short',
    { spec: { tokenRequests: [{ audience: 'a', expirationSeconds: 60 }, { audience: 'a' }] } },
    [
      'spec.tokenRequests[0].expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes',
      'spec.tokenRequests[1].audience: Duplicate value: "a"',
    ],
  ],
]);

table(CSINode, [
  [
    'drivers of the same name',
    { spec: { drivers: ['1', ''].map((nodeID) => ({ name: 'a', nodeID })) } },
    ['spec.drivers[1].nodeID: Required value', 'spec.drivers[1].name: Duplicate value: "a"'],
  ],
]);

table(CSIStorageCapacity, [
  ['a class', { storageClassName: 'fast', capacity: '1Gi' }, []],
  [
    'a negative capacity',
    { storageClassName: 'fast', capacity: '-1' },
    ['capacity: Invalid value: "-1": must be greater than or equal to 0'],
  ],
]);

table(RuntimeClass, [
  ['overhead and scheduling', { handler: 'runc', overhead: { podFixed: { cpu: '1' } }, scheduling: {} }, []],
  [
    'unknown resources and repeated tolerations',
    {
      handler: 'runc',
      overhead: { podFixed: { pods: '1' } },
      scheduling: {
        tolerations: [
          { key: 'a', operator: 'Exists' },
          { key: 'a', operator: 'Exists' },
        ],
      },
    },
    [
      'overhead.limits[pods]: Invalid value: "pods": must be a standard resource for containers',
      'overhead.requests[pods]: Invalid value: "pods": must be a standard resource for containers',
      'scheduling.tolerations[1]: Duplicate value: {"key":"a","operator":"Exists"}',
    ],
  ],
]);

test('identifying fields of a RuntimeClass, a CSIDriver and a CSIStorageCapacity cannot be changed', (t) => {
  const runtime = create(RuntimeClass, { metadata, handler: 'runc' }).object;
  t.deepEqual(update(RuntimeClass, runtime, (one) => Object.assign(one, { handler: 'x' })).messages, [
    'handler: Invalid value: "x": field is immutable',
  ]);
  const driver = create(CSIDriver, { metadata, spec: {} }).object;
  t.deepEqual(update(CSIDriver, driver, ({ spec }) => Object.assign(spec, { attachRequired: false })).messages, [
    'spec.attachedRequired: Invalid value: false: field is immutable',
  ]);
  const capacity = create(CSIStorageCapacity, { metadata, storageClassName: 'fast' }).object;
  t.deepEqual(update(CSIStorageCapacity, capacity, (one) => Object.assign(one, { storageClassName: 'x' })).messages, [
    'storageClassName: Invalid value: "x": field is immutable',
  ]);
});

table(NetworkPolicy, [
  ['nothing', { spec: {} }, []],
  [
    'ports',
    {
      spec: {
        ingress: [
          {
            ports: [
              { port: 80, endPort: 70 },
              { port: 'http', endPort: 90 },
              { endPort: 90 },
              { protocol: 'ICMP' },
              { port: 0 },
            ],
          },
        ],
      },
    },
    [
      'spec.ingress[0].ports[0].endPort: Invalid value: 80: must be greater than or equal to `port`',
      'spec.ingress[0].ports[1].endPort: Invalid value: 90: may not be specified when `port` is non-numeric',
      'spec.ingress[0].ports[2].endPort: Invalid value: 90: may not be specified when `port` is not specified',
      'spec.ingress[0].ports[3].protocol: Unsupported value: "ICMP": supported values: "TCP", "UDP", "SCTP"',
      'spec.ingress[0].ports[4].port: Invalid value: 0: must be between 1 and 65535, inclusive',
    ],
  ],
  [
    'peers',
    {
      spec: {
        egress: [
          {
            to: [
              {},
              { podSelector: {}, ipBlock: { cidr: '10.0.0.0/8' } },
              { ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16', '10.0.0.0/8', '11.0.0.0/16', '::/0'] } },
              { ipBlock: { cidr: '' } },
            ],
          },
        ],
      },
    },
    [
      'spec.egress[0].to[0]: Required value: must specify a peer',
      'spec.egress[0].to[1]: Forbidden: may not specify both ipBlock and another peer',
      'spec.egress[0].to[2].ipBlock.except[1]: Invalid value: "10.0.0.0/8": must be a strict subset of `cidr`',
      'spec.egress[0].to[2].ipBlock.except[2]: Invalid value: "11.0.0.0/16": must be a strict subset of `cidr`',
      'spec.egress[0].to[2].ipBlock.except[3]: Invalid value: "::/0": must be a strict subset of `cidr`',
      'spec.egress[0].to[3].ipBlock.cidr: Required value',
    ],
  ],
  [
    'an unknown type',
    { spec: { policyTypes: ['Forward'] } },
    ['spec.policyTypes[0]: Unsupported value: "Forward": supported values: "Ingress", "Egress"'],
  ],
]);

test('the policy types of a NetworkPolicy follow from its rules', (t) => {
  const typesOf = (spec: object) => create(NetworkPolicy, { metadata, spec }).object.spec.policyTypes;
  t.deepEqual(typesOf({}), ['Ingress']);
  t.deepEqual(typesOf({ egress: [{}] }), ['Ingress', 'Egress']);
  const { object } = create(NetworkPolicy, { metadata, spec: { podSelector: { matchLabels: { a: 'b' } } } });
  t.is(row(NetworkPolicy, object)['Pod-Selector'], 'a=b');
});

table(IngressClass, [
  ['a controller', { spec: { controller: 'example.com/ingress' } }, []],
  ['no controller', { spec: {} }, ['spec.controller: Required value']],
  [
    'a controller without a domain',
    { spec: { controller: 'ingress' } },
    ['spec.controller: Invalid value: "ingress": must be a domain-prefixed path (such as "acme.io/foo")'],
  ],
  [
    'parameters in no namespace',
    { spec: { controller: 'a.b/c', parameters: { kind: 'Config', name: 'a/b', scope: 'Namespace' } } },
    [
      'spec.parameters.name: Invalid value: "a/b": may not contain \'/\'',
      "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'",
    ],
  ],
]);
