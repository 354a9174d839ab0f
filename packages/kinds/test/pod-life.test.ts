import { decoderOf } from '@keelson/core/internal';
import test from 'ava';
import { Pod } from '../src/index.ts';
import { container, podManifest } from './helpers/manifests.ts';
import { create, defaulted, row, update, updateStatus } from './helpers/writes.ts';

const stored = (spec: Record<string, unknown> = {}) => create(Pod, podManifest(spec)).object;

test('a pod has all defaults of the reference implementation', (t) => {
  const { spec, status } = stored({
    hostNetwork: true,
    serviceAccount: 'robot',
    volumes: [{ name: 'a' }, { name: 'b', configMap: { name: 'c' } }, { name: 'c', hostPath: { path: '/x' } }],
    containers: [
      {
        ...container,
        ports: [{ containerPort: 80 }],
        env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
        livenessProbe: { httpGet: { port: 80 }, timeoutSeconds: 0 },
        resources: { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '500m' } },
      },
    ],
  });
  t.like(spec, {
    restartPolicy: 'Always',
    dnsPolicy: 'ClusterFirst',
    terminationGracePeriodSeconds: 30,
    schedulerName: 'default-scheduler',
    securityContext: {},
    enableServiceLinks: true,
    serviceAccountName: 'robot',
    serviceAccount: 'robot',
  });
  t.deepEqual(spec.volumes, [
    { name: 'a', emptyDir: {} },
    { name: 'b', configMap: { name: 'c', defaultMode: 420 } },
    { name: 'c', hostPath: { path: '/x', type: '' } },
  ]);
  const [only] = spec.containers;
  t.like(only, {
    imagePullPolicy: 'IfNotPresent',
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    ports: [{ containerPort: 80, hostPort: 80, protocol: 'TCP' }],
    resources: { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '500m', memory: '1Gi' } },
  });
  t.is(only?.env?.[0]?.valueFrom?.fieldRef?.apiVersion, 'v1');
  t.deepEqual(only?.livenessProbe, {
    httpGet: { path: '/', port: 80, scheme: 'HTTP' },
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  });
  t.deepEqual(status, { phase: 'Pending', qosClass: 'Burstable' });
});

test('defaults are idempotent and survive decoding', (t) => {
  const once = stored({ hostNetwork: true, containers: [{ ...container, ports: [{ containerPort: 1 }] }] });
  const again = defaulted(Pod, once);
  t.deepEqual(again, once);
  t.deepEqual(decoderOf(Pod.schema)(once).errors, []);
});

for (const [image, policy] of [
  ['nginx', 'Always'],
  ['nginx:latest', 'Always'],
  ['host:5000/nginx', 'Always'],
  ['host:5000/nginx:1', 'IfNotPresent'],
  ['nginx@sha256:abc', 'IfNotPresent'],
  ['nginx:1@sha256:abc', 'IfNotPresent'],
]) {
  test(`the pull policy of ${image} is ${policy}`, (t) => {
    t.is(stored({ containers: [{ name: 'a', image }] }).spec.containers[0]?.imagePullPolicy, policy);
  });
}

const guaranteed = { resources: { limits: { cpu: '1', memory: '1Gi' } } };
for (const [title, containers, expected] of [
  ['nothing asked for', [container], 'BestEffort'],
  ['limits for both', [{ ...container, ...guaranteed }], 'Guaranteed'],
  [
    'one container without limits',
    [
      { ...container, ...guaranteed },
      { ...container, name: 'b' },
    ],
    'Burstable',
  ],
  [
    'equal quantities in other notation',
    [
      {
        ...container,
        resources: { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '1000m', memory: '1024Mi' } },
      },
    ],
    'Guaranteed',
  ],
  ['only a request', [{ ...container, resources: { requests: { cpu: '1m' } } }], 'Burstable'],
  ['only a disk', [{ ...container, resources: { requests: { 'ephemeral-storage': '1Gi' } } }], 'BestEffort'],
] as const) {
  test(`quality of service with ${title} is ${expected}`, (t) => {
    t.is(stored({ containers }).status?.qosClass, expected);
  });
}

test('the status of a create body is dropped; a pod with scheduling gates has the condition SchedulingGated', (t) => {
  const manifest = { ...podManifest({ schedulingGates: [{ name: 'x.io/g' }] }), status: { phase: 'Running' } };
  const { object, causes } = create(Pod, manifest);
  t.deepEqual(causes, []);
  t.is(object.status?.phase, 'Pending');
  t.is(object.status?.conditions?.[0]?.reason, 'SchedulingGated');
});

test('an update may change images, lower the active deadline and add tolerations', (t) => {
  const old = stored({ activeDeadlineSeconds: 100, initContainers: [{ ...container, name: 'i' }] });
  const { causes } = update(Pod, old, ({ spec }) => {
    spec.containers[0]!.image = 'nginx:2';
    spec.initContainers![0]!.image = 'nginx:3';
    spec.activeDeadlineSeconds = 50;
    spec.tolerations = [{ key: 'a', operator: 'Exists' }];
  });
  t.deepEqual(causes, []);
});

const changes: readonly [string, (pod: Pod) => void, readonly string[]][] = [
  [
    'a command',
    ({ spec }) => {
      spec.containers[0]!.command = ['x'];
    },
    ['spec Forbidden'],
  ],
  [
    'the node',
    ({ spec }) => {
      spec.nodeName = 'n';
    },
    ['spec Forbidden'],
  ],
  [
    'the node selector',
    ({ spec }) => {
      spec.nodeSelector = { a: 'b' };
    },
    ['spec Forbidden'],
  ],
  [
    'another container',
    ({ spec }) => void spec.containers.push({ name: 'b', image: 'b' }),
    ['spec.containers Forbidden'],
  ],
  ['no image', ({ spec }) => void delete spec.containers[0]!.image, ['spec.containers[0].image Required']],
  [
    'a longer deadline',
    ({ spec }) => {
      spec.activeDeadlineSeconds = 101;
    },
    ['spec.activeDeadlineSeconds Invalid'],
  ],
  ['no deadline', ({ spec }) => void delete spec.activeDeadlineSeconds, ['spec.activeDeadlineSeconds Invalid']],
  [
    'fewer tolerations',
    ({ spec }) => {
      spec.tolerations = [];
    },
    ['spec.tolerations Forbidden'],
  ],
  [
    'a new gate',
    ({ spec }) => {
      spec.schedulingGates = [{ name: 'x.io/g' }];
    },
    ['spec.schedulingGates Forbidden'],
  ],
];
for (const [title, change, causes] of changes) {
  test(`an update with ${title} is rejected`, (t) => {
    const old = stored({ activeDeadlineSeconds: 100, tolerations: [{ key: 'a', operator: 'Exists' }] });
    t.deepEqual(update(Pod, old, change).causes, causes);
  });
}

test('the node selector of a pod with scheduling gates may only be narrowed, and the gates may be removed', (t) => {
  const old = stored({ schedulingGates: [{ name: 'x.io/g' }], nodeSelector: { a: 'b' } });
  const narrowed = update(Pod, old, ({ spec }) => {
    spec.nodeSelector = { a: 'b', c: 'd' };
    delete spec.schedulingGates;
  });
  t.deepEqual(narrowed.causes, []);
  const widened = update(Pod, old, ({ spec }) => {
    spec.nodeSelector = { c: 'd' };
  });
  t.deepEqual(widened.causes, ['spec.nodeSelector Invalid']);
});

test('a status write keeps spec and owners, and cannot restart a terminated container of policy Never', (t) => {
  const old = stored({ restartPolicy: 'Never' });
  old.status = {
    phase: 'Running',
    qosClass: 'BestEffort',
    containerStatuses: [status('app', { terminated: { exitCode: 0 } })],
  };
  const written = updateStatus(Pod, old, (pod) => {
    pod.spec.nodeName = 'elsewhere';
    pod.metadata!.ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'u' }];
    pod.status = { phase: 'Running', containerStatuses: [status('app', { running: {} })] };
  });
  t.is(written.object.spec.nodeName, undefined);
  t.is(written.object.metadata?.ownerReferences, undefined);
  t.is(written.object.status?.qosClass, 'BestEffort');
  t.deepEqual(written.causes, ['status.containerStatuses[0].state Forbidden']);
});

for (const [title, spec, phase, requested, expected] of [
  ['that of its specification', { nodeName: 'n' }, 'Running', undefined, 30],
  ['the requested one', { nodeName: 'n' }, 'Running', 5, 5],
  ['absent when 0 is requested', { nodeName: 'n' }, 'Running', 0, undefined],
  ['one second when a negative one is requested', { nodeName: 'n' }, 'Running', -1, 1],
  ['absent without a node', {}, 'Pending', 30, undefined],
  ['absent after its end', { nodeName: 'n' }, 'Failed', 30, undefined],
] as const) {
  test(`the grace period of a pod is ${title}`, (t) => {
    const pod = stored(spec);
    pod.status = { phase };
    t.is(Pod.strategy.gracePeriod?.(pod, requested), expected);
  });
}

type State = Record<string, Record<string, unknown>>;

function status(name: string, state: State, more: Record<string, unknown> = {}) {
  return { name, state, ready: false, restartCount: 0, image: '', imageID: '', ...more } as NonNullable<
    NonNullable<Pod['status']>['containerStatuses']
  >[number];
}

/** A pod with one init container, one sidecar and two containers, and the given status. */
function shown(podStatus: Pod['status'], metadata: Record<string, unknown> = {}) {
  const pod = stored({
    nodeName: 'node-1',
    initContainers: [
      { ...container, name: 'init' },
      { ...container, name: 'side', restartPolicy: 'Always' },
    ],
    containers: [container, { ...container, name: 'log' }],
    readinessGates: [{ conditionType: 'x.io/open' }],
  });
  Object.assign(pod.metadata!, { creationTimestamp: '2026-01-02T11:57:00Z' }, metadata);
  if (podStatus) pod.status = podStatus;
  return row(Pod, pod);
}

const done = status('init', { terminated: { exitCode: 0, reason: 'Completed' } });
const side = status('side', { running: {} }, { started: true, ready: true });
const running = (name: string) => status(name, { running: {} }, { ready: true });
const ready = [
  { type: 'Initialized', status: 'True' },
  { type: 'Ready', status: 'True' },
];

test('the table row of a new pod', (t) => {
  t.deepEqual(shown({ phase: 'Pending' }), {
    Name: 'p',
    Ready: '0/3',
    Status: 'Pending',
    Restarts: '0',
    Age: '3m',
    IP: '<none>',
    Node: 'node-1',
    'Nominated Node': '<none>',
    'Readiness Gates': '0/1',
  });
});

const rows: readonly [
  title: string,
  status: Pod['status'],
  expected: Record<string, unknown>,
  metadata?: Record<string, unknown>,
][] = [
  [
    'running pod',
    {
      phase: 'Running',
      podIP: '10.0.0.1',
      conditions: [...ready, { type: 'x.io/open', status: 'True' }],
      initContainerStatuses: [done, side],
      containerStatuses: [running('app'), running('log')],
    },
    { Ready: '3/3', Status: 'Running', IP: '10.0.0.1', 'Readiness Gates': '1/1' },
  ],
  [
    'crashing pod',
    {
      phase: 'Running',
      conditions: ready,
      initContainerStatuses: [done, side],
      containerStatuses: [
        status(
          'app',
          { waiting: { reason: 'CrashLoopBackOff' } },
          { restartCount: 4, lastState: { terminated: { exitCode: 1, finishedAt: '2026-01-02T11:55:00Z' } } },
        ),
        running('log'),
      ],
    },
    { Ready: '2/3', Status: 'CrashLoopBackOff', Restarts: '4 (5m ago)' },
  ],
  [
    'pod in its first init container',
    { phase: 'Pending', initContainerStatuses: [status('init', { running: {} })] },
    { Status: 'Init:0/2', Ready: '0/3' },
  ],
  [
    'pod whose init container failed',
    { phase: 'Pending', initContainerStatuses: [status('init', { terminated: { exitCode: 3 } }, { restartCount: 2 })] },
    { Status: 'Init:ExitCode:3', Restarts: '2' },
  ],
  [
    'pod whose init image is missing',
    { phase: 'Pending', initContainerStatuses: [status('init', { waiting: { reason: 'ErrImagePull' } })] },
    { Status: 'Init:ErrImagePull' },
  ],
  [
    'pod that is done but for one container',
    {
      phase: 'Running',
      conditions: ready,
      initContainerStatuses: [done],
      containerStatuses: [status('app', { terminated: { exitCode: 0, reason: 'Completed' } }), running('log')],
    },
    { Status: 'Running', Ready: '1/3' },
  ],
  [
    'pod that is done',
    { phase: 'Succeeded', containerStatuses: [status('app', { terminated: { exitCode: 0, reason: 'Completed' } })] },
    { Status: 'Completed' },
  ],
  [
    'killed pod',
    { phase: 'Failed', containerStatuses: [status('app', { terminated: { exitCode: 137, signal: 9 } })] },
    { Status: 'Signal:9' },
  ],
  ['evicted pod', { phase: 'Failed', reason: 'Evicted' }, { Status: 'Evicted' }],
  [
    'ending pod',
    { phase: 'Running', containerStatuses: [running('app')] },
    { Status: 'Terminating' },
    { deletionTimestamp: '2026-01-02T12:00:30Z' },
  ],
  [
    'pod of a lost node',
    { phase: 'Running', reason: 'NodeLost' },
    { Status: 'Unknown' },
    { deletionTimestamp: '2026-01-02T12:00:30Z' },
  ],
];
for (const [title, podStatus, expected, metadata] of rows) {
  test(`the table row of a ${title}`, (t) => {
    t.like(shown(podStatus, metadata), expected);
  });
}

test('table rows of finished pods have the condition Completed', (t) => {
  const pod = stored();
  t.deepEqual(Pod.rowConditions?.(pod), []);
  pod.status = { phase: 'Failed' };
  t.like(Pod.rowConditions?.(pod)[0], { type: 'Completed', status: 'True', reason: 'Failed' });
});
