import type { ApiClient } from '@keelson/core';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import type { ContainerStatus, Pod } from '@keelson/kinds';
import test from 'ava';
import { type PodPhase, podConditions, podPhase } from '../../../src/pods/status/pod-status.ts';
import { StatusReports, statusPatch } from '../../../src/pods/status/status-reports.ts';
import { startBench, testPod } from '../../support/bench.ts';

/** `r` running, `w` waiting, a number = ended with this code, `w1` = waits after an end with 1. */
type Word = 'r' | 'w' | 'w0' | 'w1' | 0 | 1;

function status(name: string, word: Word): ContainerStatus {
  const terminated = (exitCode: number) => ({ terminated: { exitCode } });
  const base = { name, ready: word === 'r' || word === 0, restartCount: 0, image: '', imageID: '', lastState: {} };
  if (word === 'r') return { ...base, state: { running: {} }, started: true };
  if (typeof word === 'number') return { ...base, state: terminated(word) };
  return {
    ...base,
    ready: false,
    state: { waiting: {} },
    lastState: word === 'w' ? {} : terminated(word === 'w0' ? 0 : 1),
  };
}

const rows: readonly (readonly [policy: string, init: readonly Word[], main: readonly Word[], phase: PodPhase])[] = [
  ['Always', [], ['w'], 'Pending'],
  ['Always', [], ['r'], 'Running'],
  ['Always', [], ['r', 'w'], 'Pending'],
  ['Always', [], ['r', 'w1'], 'Running'],
  ['Always', [], [0], 'Running'],
  ['Always', [], ['w1'], 'Running'],
  ['Always', ['r'], ['w'], 'Pending'],
  ['Always', ['w1'], ['w'], 'Pending'],
  ['Always', [0], ['w'], 'Pending'],
  ['Always', [0], ['r'], 'Running'],
  ['OnFailure', [], [0], 'Succeeded'],
  ['OnFailure', [], [1], 'Running'],
  ['OnFailure', [], [0, 'w1'], 'Running'],
  ['OnFailure', [], [0, 'r'], 'Running'],
  ['OnFailure', [1], ['w'], 'Pending'],
  ['Never', [], [0], 'Succeeded'],
  ['Never', [], [1], 'Failed'],
  ['Never', [], [0, 1], 'Failed'],
  ['Never', [], [1, 'r'], 'Running'],
  ['Never', [], [0, 'w'], 'Pending'],
  ['Never', [1], ['w'], 'Failed'],
  ['Never', [0, 'r'], ['w'], 'Pending'],
];

for (const [restartPolicy, init, main, phase] of rows) {
  test(`phase: ${restartPolicy}, init [${init}], containers [${main}] → ${phase}`, (t) => {
    const named = (words: readonly Word[], kind: string) => words.map((_, i) => ({ name: `${kind}${i}`, image: 'a' }));
    const pod = testPod('p', { restartPolicy, initContainers: named(init, 'i'), containers: named(main, 'c') });
    const of = (words: readonly Word[], kind: string) => words.map((word, i) => status(`${kind}${i}`, word));
    t.is(podPhase(pod, of(init, 'i'), of(main, 'c')), phase);
  });
}

test('a condition keeps its transition time until its status changes', (t) => {
  const pod = testPod('p');
  const first = podConditions(pod, { phase: 'Running', init: [], main: [status('main', 'r')], before: [], nowMs: 0 });
  const later = podConditions(pod, {
    phase: 'Running',
    init: [],
    main: [status('main', 'w1')],
    before: first,
    nowMs: 60_000,
  });
  const time = (list: typeof first, type: string) => list.find((one) => one.type === type)?.lastTransitionTime;
  t.is(time(later, 'Initialized'), '1970-01-01T00:00:00Z');
  t.is(time(later, 'Ready'), '1970-01-01T00:01:00Z');
  t.is(later.find(({ type }) => type === 'Ready')?.message, 'containers with unready status: [main]');
});

test('conditions name the generation of the pod that they are about', (t) => {
  const pod = testPod('p');
  const facts = { phase: 'Running', init: [], main: [status('main', 'r')], before: [], nowMs: 0 } as const;
  const generations = (of: Pod) => podConditions(of, facts).map(({ observedGeneration }) => observedGeneration);
  t.deepEqual(generations({ ...pod, metadata: { ...pod.metadata, generation: 3 } }), [3, 3, 3, 3]);
  t.deepEqual(generations({ ...pod, metadata: { name: 'from-a-file' } }), Array(4).fill(undefined));
});

test('a pod is not ready before its readiness gates are true', (t) => {
  const pod = testPod('p', { readinessGates: [{ conditionType: 'own/gate' }] });
  const ready = (before: Pod['status']) =>
    podConditions(pod, {
      phase: 'Running',
      init: [],
      main: [status('main', 'r')],
      before: before?.conditions ?? [],
      nowMs: 0,
    })[1];
  t.is(ready({})?.reason, 'ReadinessGatesNotReady');
  t.is(ready({ conditions: [{ type: 'own/gate', status: 'True' }] })?.status, 'True');
});

test('the patch contains changed fields, removes absent ones, and keeps those of other writers', (t) => {
  const old = {
    phase: 'Pending',
    reason: 'Forbidden',
    podIP: '10.0.0.1',
    podIPs: [{ ip: '10.0.0.1' }],
    nominatedNodeName: 'other',
    conditions: [
      { type: 'own/gate', status: 'True' },
      { type: 'Ready', status: 'False', reason: 'x' },
    ],
  };
  const next = {
    phase: 'Running',
    podIP: '10.0.0.1',
    podIPs: [{ ip: '10.0.0.2' }],
    conditions: [{ type: 'Ready', status: 'True' }],
  };
  t.deepEqual(statusPatch(old, next), {
    phase: 'Running',
    reason: null,
    podIPs: [{ ip: '10.0.0.2' }, { $patch: 'replace' }],
    conditions: [{ type: 'Ready', status: 'True', reason: null, message: null }],
  });
  t.is(statusPatch(next, next), undefined);
});

test('pods keep running while the API is unavailable, and their latest status is written afterwards', async (t) => {
  let away = true;
  const written: unknown[] = [];
  const answer = async (value: unknown) => {
    if (away) throw new Error('connection refused');
    return value;
  };
  const pod = testPod('web', {}, { 'kubernetes.io/config.source': 'api' });
  const client = {
    namespace: () => client,
    get: (name: string) => answer({ metadata: { name } }),
    create: answer,
    update: answer,
    patch: () => answer({}),
    list: () => answer({ items: [] }),
    patchSubresource: async (name: string, _: string, __: string, body: { status: Pod['status'] }) => {
      await answer(undefined);
      if (name === 'web') written.push(body.status?.phase ?? written.at(-1));
      return { ...pod, status: body.status };
    },
  };
  away = false;
  const bench = await startBench(t, { api: { resource: () => client } as unknown as ApiClient });
  bench.pods.put(pod);
  await bench.until(() => written.at(-1) === 'Running');
  away = true;
  const before = written.length;
  bench.world.exit(bench.containers('main')[0]?.id ?? '', 3);
  await bench.until(() => bench.status(pod).containerStatuses?.[0]?.restartCount === 1);
  await bench.pass(600_000);
  t.is(bench.containers('main')[0]?.state, 'running');
  t.is(written.length, before);
  away = false;
  await bench.until(() => written.length > before, 30_000);
  t.is(bench.status(pod).phase, 'Running');
});

/** An API that accepts statuses of pods, and returns the phases in order. */
function takingApi(pod: Pod): { readonly api: ApiClient; readonly phases: (string | undefined)[] } {
  const phases: (string | undefined)[] = [];
  let status: Pod['status'] = {};
  const client = {
    namespace: () => client,
    get: async (name: string) => ({ metadata: { name } }),
    create: async (value: unknown) => value,
    update: async (value: unknown) => value,
    patch: async () => ({}),
    list: async () => ({ items: [] }),
    patchSubresource: async (name: string, _: string, __: string, body: { status: Pod['status'] }) => {
      if (name !== pod.metadata?.name) return {};
      status = { ...status, ...body.status };
      phases.push(status?.phase);
      return { ...pod, status };
    },
  };
  return { api: { resource: () => client } as unknown as ApiClient, phases };
}

test('a pod that starts quickly has one status update; a slow start has another one before', async (t) => {
  const quick = testPod('quick', {}, { 'kubernetes.io/config.source': 'api' });
  const first = takingApi(quick);
  const bench = await startBench(t, { api: first.api });
  bench.pods.put(quick);
  await bench.until(() => first.phases.length > 0);
  await bench.pass(1000);
  t.deepEqual(first.phases, ['Running']);
  const slow = testPod('slow', {}, { 'kubernetes.io/config.source': 'api' });
  const second = takingApi(slow);
  const other = await startBench(t, { api: second.api, script: () => ({ startDelayMs: 5000 }) });
  other.pods.put(slow);
  await other.until(() => second.phases.length > 1, 30_000);
  t.deepEqual(second.phases, ['Pending', 'Running']);
});

test('a static pod starts although the API server never responded', async (t) => {
  const refuse = () => Promise.reject(new Error('connection refused'));
  const client = { namespace: () => client, get: refuse, create: refuse, list: refuse, patchSubresource: refuse };
  const bench = await startBench(t, { api: { resource: () => client } as unknown as ApiClient });
  const pod = testPod('server');
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  t.pass();
});

test('the object of a pod is deleted after the pod has ended and its last status, if any, was written', async (t) => {
  const [unreported, reported] = ['unreported', 'reported'].map((name) =>
    testPod(name, {}, { 'kubernetes.io/config.source': 'api' }),
  ) as [Pod, Pod];
  const calls: unknown[] = [];
  const client = {
    namespace: () => client,
    patchSubresource: async (name: string, _: string, __: string, body: { readonly status: Pod['status'] }) => {
      calls.push(['patch', name, body.status?.phase]);
      return { status: body.status };
    },
    delete: async (name: string, options: { readonly preconditions: unknown; readonly gracePeriodSeconds: number }) =>
      void calls.push(['delete', name, options.gracePeriodSeconds, options.preconditions]),
  };
  const reports = new StatusReports({
    ...{ clock: systemClock, logger: silentLogger, batchMs: 1000, mirrorOf: () => undefined },
    api: { resource: () => client } as unknown as ApiClient,
  });
  t.teardown(() => reports.stop());
  for (const pod of [unreported, reported]) {
    const uid = pod.metadata?.uid ?? '';
    if (pod === reported) reports.set(pod, { phase: 'Succeeded' });
    reports.ended(pod);
    for (const start = Date.now(); reports.get(uid) !== undefined && Date.now() - start < 30_000; )
      await new Promise((resolve) => setTimeout(resolve, 5));
    t.is(reports.get(uid), undefined);
  }
  t.deepEqual(calls, [
    ['delete', 'unreported', 0, { uid: unreported.metadata?.uid }],
    ['patch', 'reported', 'Succeeded'],
    ['delete', 'reported', 0, { uid: reported.metadata?.uid }],
  ]);
});
