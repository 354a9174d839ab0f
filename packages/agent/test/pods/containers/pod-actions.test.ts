import type { ContainerStatus, PodSandboxStatus } from '@keelson/container-runtime';
import type { Container, Pod } from '@keelson/kinds';
import test from 'ava';
import { RestartBackoff } from '../../../src/base/restart-backoff.ts';
import { type PodActions, podActions } from '../../../src/pods/containers/pod-actions.ts';
import { containerAnnotations } from '../../../src/runtime-view/runtime-objects.ts';
import { testPod } from '../../support/bench.ts';

type State = 'created' | 'running' | 'unknown' | number;

function sandbox(id: string, changes: Partial<PodSandboxStatus> = {}): PodSandboxStatus {
  return {
    id,
    metadata: { name: 'p', namespace: 'default', uid: 'u', attempt: 0 },
    state: 'ready',
    createdAt: 0,
    labels: {},
    annotations: {},
    ips: ['10.0.0.1'],
    namespaces: { network: 'pod', pid: 'container', ipc: 'pod' },
    ...changes,
  };
}

/** A number as state is the exit code of an ended container. */
function container(pod: Pod, spec: Container, state: State, sandboxId = 's', attempt = 0): ContainerStatus {
  return {
    id: `${spec.name}-${attempt}`,
    sandboxId,
    metadata: { name: spec.name, attempt },
    image: 'app:1',
    imageId: 'i',
    createdAt: attempt,
    state: typeof state === 'number' ? 'exited' : state,
    labels: {},
    annotations: containerAnnotations(pod, spec, undefined),
    mounts: [],
    resources: {},
    ...(typeof state === 'number' ? { exitCode: state, finishedAt: 1 } : {}),
  };
}

const main: Container = { name: 'main', image: 'app:1' };
const other: Container = { name: 'other', image: 'app:1' };
const init: Container = { name: 'init', image: 'app:1' };
const side: Container = { name: 'side', image: 'app:1', restartPolicy: 'Always' };

interface Case {
  readonly title: string;
  readonly spec?: Partial<Pod['spec']>;
  readonly sandboxes?: readonly PodSandboxStatus[];
  readonly containers?: (pod: Pod) => readonly ContainerStatus[];
  readonly failed?: Readonly<Record<string, 'liveness' | 'startup'>>;
  /** In short: `pod` = everything ends, `+n` = new sandbox number n, `-x` = x ends, `x#n` = instance n of x starts. */
  readonly expected: string;
}

const cases: readonly Case[] = [
  { title: 'a new pod', expected: '+0 main#0' },
  {
    title: 'all containers are running',
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, main, 'running')],
    expected: '',
  },
  { title: 'a sandbox without containers', sandboxes: [sandbox('s')], expected: 'main#0' },
  {
    title: 'a container that was created and not started',
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, main, 'created')],
    expected: 'main#1',
  },
  {
    title: 'Always restarts success',
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, main, 0)],
    expected: 'main#1',
  },
  {
    title: 'OnFailure restarts failure',
    spec: { restartPolicy: 'OnFailure' },
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, main, 2)],
    expected: 'main#1',
  },
  {
    title: 'OnFailure leaves success',
    spec: { restartPolicy: 'OnFailure' },
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, main, 0)],
    expected: 'pod',
  },
  {
    title: 'Never leaves failure',
    spec: { restartPolicy: 'Never' },
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, main, 1)],
    expected: 'pod',
  },
  {
    title: 'Never keeps the pod while another runs',
    spec: { restartPolicy: 'Never', containers: [main, other] },
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, main, 1), container(pod, other, 'running')],
    expected: '',
  },
  {
    title: 'an unknown state',
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, main, 'unknown')],
    expected: '-main main#1',
  },
  {
    title: 'a changed specification, with any policy',
    spec: { restartPolicy: 'Never' },
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, { ...main, image: 'app:0' }, 'running')],
    expected: '-main main#1',
  },
  {
    title: 'a failed liveness probe',
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, main, 'running')],
    failed: { main: 'liveness' },
    expected: '-main main#1',
  },
  {
    title: 'a failed liveness probe with Never',
    spec: { restartPolicy: 'Never' },
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, main, 'running')],
    failed: { main: 'liveness' },
    expected: '-main',
  },
  {
    title: 'a dead sandbox',
    sandboxes: [sandbox('s', { state: 'notReady' })],
    containers: (pod) => [container(pod, main, 137)],
    expected: 'pod +1 main#1',
  },
  {
    title: 'a dead sandbox with Never',
    spec: { restartPolicy: 'Never' },
    sandboxes: [sandbox('s', { state: 'notReady' })],
    containers: (pod) => [container(pod, main, 137)],
    expected: 'pod',
  },
  {
    title: 'a dead sandbox whose containers have all succeeded',
    spec: { restartPolicy: 'OnFailure' },
    sandboxes: [sandbox('s', { state: 'notReady' })],
    containers: (pod) => [container(pod, main, 0)],
    expected: 'pod',
  },
  {
    title: 'a dead sandbox, one container succeeded',
    spec: { restartPolicy: 'OnFailure', containers: [main, other] },
    sandboxes: [sandbox('s', { state: 'notReady' })],
    containers: (pod) => [container(pod, main, 0), container(pod, other, 1)],
    expected: 'pod +1 other#1',
  },
  { title: 'two live sandboxes', sandboxes: [sandbox('s'), sandbox('r')], expected: 'pod +1 main#0' },
  { title: 'a sandbox without address', sandboxes: [sandbox('s', { ips: [] })], expected: 'pod +1 main#0' },
  {
    title: 'a sandbox on the wrong network',
    spec: { hostNetwork: true },
    sandboxes: [sandbox('s')],
    expected: 'pod +1 main#0',
  },
  { title: 'the first init container', spec: { initContainers: [init, other] }, expected: '+0 init#0' },
  {
    title: 'a running init container',
    spec: { initContainers: [init] },
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, init, 'running')],
    expected: '',
  },
  {
    title: 'after the last init container',
    spec: { initContainers: [init] },
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, init, 0)],
    expected: 'main#0',
  },
  {
    title: 'a failed init container',
    spec: { initContainers: [init] },
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, init, 1)],
    expected: 'init#1',
  },
  {
    title: 'a failed init container with Never',
    spec: { restartPolicy: 'Never', initContainers: [init] },
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, init, 1)],
    expected: 'pod',
  },
  {
    title: 'init containers run again in a new sandbox',
    spec: { initContainers: [init] },
    sandboxes: [sandbox('t'), sandbox('s', { state: 'notReady' })],
    containers: (pod) => [container(pod, main, 137, 's'), container(pod, init, 0, 's')],
    expected: 'init#1',
  },
  {
    title: 'init containers are not run again beside running ones',
    spec: { initContainers: [init] },
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, main, 'running')],
    expected: '',
  },
  {
    title: 'a running sidecar does not block the next init container',
    spec: { initContainers: [side, init] },
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, side, 'running')],
    expected: 'init#0',
  },
  {
    title: 'an ended sidecar beside running containers',
    spec: { initContainers: [side] },
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, side, 1), container(pod, main, 'running')],
    expected: 'side#1',
  },
  {
    title: 'a sidecar alone does not keep the pod running',
    spec: { restartPolicy: 'Never', initContainers: [side] },
    sandboxes: [sandbox('s')],
    containers: (pod) => [container(pod, side, 'running'), container(pod, main, 0)],
    expected: 'pod',
  },
];

function inShort({ killPod, sandboxAttempt, kill, start }: PodActions): string {
  return [
    ...(killPod ? ['pod'] : []),
    ...(sandboxAttempt === undefined ? [] : [`+${sandboxAttempt}`]),
    ...kill.map(({ status }) => `-${status.metadata.name}`),
    ...start.map(({ container: { name }, attempt }) => `${name}#${attempt}`),
  ].join(' ');
}

for (const { title, spec, sandboxes = [], containers = () => [], failed = {}, expected } of cases) {
  test(`actions: ${title} → ${expected || 'nothing'}`, (t) => {
    const pod = testPod('p', { containers: [main], ...spec });
    const state = { uid: 'u', name: 'p', namespace: 'default', sandboxes, containers: containers(pod) };
    const actions = podActions(pod, state, {
      podNetwork: true,
      failedProbe: ({ metadata }) => failed[metadata.name],
      started: ({ state: is }) => is === 'running',
    });
    t.is(inShort(actions), expected);
  });
}

test('the back-off doubles from 10 s to 5 min and is reset after 10 minutes without a crash', (t) => {
  const backoff = new RestartBackoff();
  let now = 0;
  const pauses: number[] = [];
  for (let i = 0; i < 8; i += 1) {
    pauses.push(backoff.remaining('k', now, now) / 1000);
    now += backoff.remaining('k', now, now);
    backoff.next('k', now);
  }
  t.deepEqual(pauses, [0, 10, 20, 40, 80, 160, 300, 300]);
  t.is(backoff.remaining('k', now + 600_001, now + 600_001), 0);
  backoff.next('k', now + 600_001);
  t.is(backoff.pauseMs('k'), 10_000);
});
