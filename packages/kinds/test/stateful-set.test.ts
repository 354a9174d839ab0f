import test from 'ava';
import { ControllerRevision, StatefulSet } from '../src/index.ts';
import { container, workloadManifest } from './helpers/manifests.ts';
import { create, defaulted, row, update, updateStatus } from './helpers/writes.ts';

const set = (spec: Record<string, unknown> = {}) => workloadManifest('apps/v1', 'StatefulSet', spec);
const claim = (spec: Record<string, unknown> = {}) => ({
  metadata: { name: 'data' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
});
const claims = (spec: Record<string, unknown>) => ({ volumeClaimTemplates: [claim(spec)] });
const at = 'spec.volumeClaimTemplates[0].spec';
const label =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with " +
  "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

test('defaults of a StatefulSet', (t) => {
  const { spec } = defaulted(StatefulSet, set(claims({})));
  t.like(spec, {
    replicas: 1,
    serviceName: '',
    podManagementPolicy: 'OrderedReady',
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
    revisionHistoryLimit: 10,
    persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
  });
  t.deepEqual(spec.volumeClaimTemplates, [
    {
      kind: 'PersistentVolumeClaim',
      apiVersion: 'v1',
      metadata: { name: 'data' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        volumeMode: 'Filesystem',
      },
      status: { phase: 'Pending' },
    },
  ]);
  t.deepEqual(defaulted(StatefulSet, set({ updateStrategy: { type: 'RollingUpdate' } })).spec.updateStrategy, {
    type: 'RollingUpdate',
  });
  t.deepEqual(defaulted(StatefulSet, set({ updateStrategy: { type: 'OnDelete' } })).spec.updateStrategy, {
    type: 'OnDelete',
  });
});

const strategy = (updateStrategy: Record<string, unknown>) => ({ updateStrategy });
const pace = 'spec.updateStrategy.rollingUpdate';
for (const [title, spec, messages] of [
  ['claims', claims({}), []],
  ['Parallel', { podManagementPolicy: 'Parallel' }, []],
  [
    'an unknown policy',
    { podManagementPolicy: 'Any' },
    [`spec.podManagementPolicy: Invalid value: "Any": must be 'OrderedReady' or 'Parallel'`],
  ],
  [
    'an unknown strategy',
    strategy({ type: 'Recreate' }),
    [`spec.updateStrategy: Invalid value: {"type":"Recreate"}: must be 'RollingUpdate' or 'OnDelete'`],
  ],
  [
    'a pace of OnDelete',
    strategy({ type: 'OnDelete', rollingUpdate: { partition: 1 } }),
    [`${pace}: Invalid value: {"partition":1}: only allowed for updateStrategy 'RollingUpdate'`],
  ],
  [
    'no progress',
    strategy({ type: 'RollingUpdate', rollingUpdate: { partition: -1, maxUnavailable: '0%' } }),
    [
      `${pace}.partition: Invalid value: -1: must be greater than or equal to 0`,
      `${pace}.maxUnavailable: Invalid value: "0%": cannot be 0`,
    ],
  ],
  [
    'a text as pace',
    strategy({ type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 'half' } }),
    [
      `${pace}.maxUnavailable: Invalid value: "half": a valid percent string must be a numeric string followed by an ` +
        "ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
    ],
  ],
  [
    'more than all',
    strategy({ type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '101%' } }),
    [`${pace}.maxUnavailable: Invalid value: "101%": must not be greater than 100%`],
  ],
  [
    'unknown retention',
    { persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Keep' } },
    [
      'spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "Keep": ' +
        'supported values: "Retain", "Delete"',
    ],
  ],
  [
    'negative numbers',
    { replicas: -1, ordinals: { start: -1 }, minReadySeconds: -1 },
    [
      'spec.replicas: Invalid value: -1: must be greater than or equal to 0',
      'spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0',
      'spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0',
    ],
  ],
  ['no selector', { selector: undefined }, ['spec.selector: Required value']],
  [
    'an empty selector',
    { selector: {} },
    ['spec.selector: Invalid value: {}: empty selector is invalid for statefulset'],
  ],
  [
    'a selector that does not match',
    { selector: { matchLabels: { app: 'db' } } },
    ['spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`'],
  ],
  [
    'a deadline',
    {
      template: {
        metadata: { labels: { app: 'web' } },
        spec: { containers: [container], activeDeadlineSeconds: 5, restartPolicy: 'Never' },
      },
    },
    [
      'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
      'spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in StatefulSet is not Supported',
    ],
  ],
  ['an invalid service', { serviceName: 'A.b' }, [`spec.serviceName: Invalid value: "A.b": ${label}`]],
  [
    'a claim without size and mode',
    claims({ accessModes: [], resources: {} }),
    [
      `${at}.accessModes: Required value: at least 1 access mode is required`,
      `${at}.resources[storage]: Required value`,
    ],
  ],
  [
    'a claim with contradicting modes',
    claims({ accessModes: ['ReadWriteOnce', 'ReadWriteOncePod'], resources: { requests: { storage: '0' } } }),
    [
      `${at}.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes`,
      `${at}.resources[storage]: Invalid value: "0": must be greater than zero`,
    ],
  ],
  [
    'a claim from an unknown source',
    claims({ dataSource: { kind: 'Snapshot', name: '' }, volumeMode: 'Tape' }),
    [
      `${at}.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"`,
      `${at}.dataSource.name: Required value`,
      `${at}.dataSource: Invalid value: "Snapshot": must be 'PersistentVolumeClaim' when referencing the default apiGroup`,
    ],
  ],
] as readonly [string, Record<string, unknown>, readonly string[]][]) {
  test(`StatefulSet with ${title}`, (t) => {
    t.deepEqual(create(StatefulSet, set(spec)).messages, messages);
  });
}

test('a container may mount a claim, and fields that the controller sets are not validated', (t) => {
  const pod = {
    containers: [{ ...container, volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
    hostname: 'NOT.VALID',
    subdomain: 'NOT.VALID',
  };
  const template = { metadata: { labels: { app: 'web' } }, spec: pod };
  t.deepEqual(create(StatefulSet, set({ template, ...claims({}) })).messages, []);
  t.deepEqual(create(StatefulSet, set({ template })).causes, [
    'spec.template.spec.containers[0].volumeMounts[0].name NotFound',
  ]);
});

test('seven fields of a StatefulSet can change, the others cannot', (t) => {
  const old = create(StatefulSet, set(claims({}))).object;
  const changed = update(StatefulSet, old, ({ spec }) => {
    spec.replicas = 5;
    spec.template.spec.containers[0]!.image = 'b';
    spec.updateStrategy = { type: 'OnDelete' };
    spec.minReadySeconds = 3;
    spec.ordinals = { start: 2 };
    spec.revisionHistoryLimit = 2;
    spec.persistentVolumeClaimRetentionPolicy = { whenDeleted: 'Delete' };
  });
  t.deepEqual(changed.messages, []);
  const refused = [
    "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', " +
      "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are " +
      'forbidden',
  ];
  const changes: ((object: typeof old) => void)[] = [
    ({ spec }) => {
      spec.serviceName = 'web';
    },
    ({ spec }) => {
      spec.podManagementPolicy = 'Parallel';
    },
    ({ spec }) => {
      spec.volumeClaimTemplates![0]!.spec.resources!.requests!['storage'] = '2Gi';
    },
    ({ spec }) => {
      spec.selector.matchExpressions = [{ key: 'app', operator: 'Exists' }];
    },
  ];
  for (const change of changes) t.deepEqual(update(StatefulSet, old, change).messages, refused);
});

test('the status of a StatefulSet must be consistent', (t) => {
  const old = create(StatefulSet, set()).object;
  const next = updateStatus(StatefulSet, old, (object) => {
    object.status = { replicas: 2, readyReplicas: 1, availableReplicas: 2, currentReplicas: 3, collisionCount: 4 };
  });
  t.deepEqual(next.messages, [
    'status.currentReplicas: Invalid value: 3: cannot be greater than status.replicas',
    'status.availableReplicas: Invalid value: 2: cannot be greater than status.readyReplicas',
  ]);
  const fewer = updateStatus(StatefulSet, next.object, (object) => {
    object.status = { replicas: 0, availableReplicas: 0 };
  });
  t.deepEqual(fewer.messages, ['status.collisionCount: Invalid value: 0: cannot be decremented']);
});

test('a negative revision history limit causes a warning', (t) => {
  const { object, messages } = create(StatefulSet, set({ revisionHistoryLimit: -1 }));
  t.deepEqual(messages, []);
  t.deepEqual(StatefulSet.strategy.warnings?.(object), [
    'spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended',
  ]);
});

test('the table row of a StatefulSet', (t) => {
  const { object } = create(StatefulSet, set({ replicas: 3 }));
  object.status = { replicas: 3, readyReplicas: 2, availableReplicas: 1 };
  t.deepEqual(row(StatefulSet, object), {
    Name: 'web',
    Ready: '2/3',
    Age: '<unknown>',
    Containers: 'app',
    Images: 'nginx:1.25',
  });
});

const revision = (fields: Record<string, unknown> = {}) => ({
  apiVersion: 'apps/v1',
  kind: 'ControllerRevision',
  metadata: { name: 'web-1', namespace: 'default' },
  data: { spec: { replicas: 1 } },
  revision: 1,
  ...fields,
});

test('the data of a ControllerRevision is required and immutable, its number is not negative', (t) => {
  t.deepEqual(create(ControllerRevision, revision({ data: undefined })).messages, [
    'data: Required value: data is mandatory',
  ]);
  t.deepEqual(create(ControllerRevision, revision({ revision: -1 })).messages, [
    'revision: Invalid value: -1: must be greater than or equal to 0',
  ]);
  const { object, messages } = create(ControllerRevision, revision());
  t.deepEqual(messages, []);
  const renumbered = update(ControllerRevision, object, (next) => {
    next.revision = 7;
  });
  t.deepEqual(renumbered.messages, []);
  const changed = update(ControllerRevision, object, (next) => {
    next.data = { spec: { replicas: 2 } };
  });
  t.deepEqual(changed.messages, ['data: Invalid value: {"spec":{"replicas":2}}: field is immutable']);
});

test('the table row of a ControllerRevision names its controller', (t) => {
  const { object } = create(ControllerRevision, revision({ revision: 12 }));
  t.deepEqual(row(ControllerRevision, object), {
    Name: 'web-1',
    Controller: '<none>',
    Revision: 12,
    Age: '<unknown>',
  });
  const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web', uid: 'u' };
  object.metadata = { ...object.metadata, ownerReferences: [{ ...owner, controller: true }] };
  t.is(row(ControllerRevision, object)['Controller'], 'statefulset.apps/web');
});
