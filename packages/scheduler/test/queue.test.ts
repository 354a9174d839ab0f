import { FakeClock } from '@keelson/core/runtime';
import test from 'ava';
import type { ClusterChange } from '../src/cluster/cluster-state.ts';
import { SchedulingQueue } from '../src/queue/scheduling-queue.ts';
import { type LocalPod, pod } from './support/local-cluster.ts';

function open() {
  const clock = new FakeClock();
  let woken = 0;
  const queue = new SchedulingQueue({
    clock,
    ready: () => {
      woken += 1;
    },
  });
  queue.start();
  return {
    clock,
    queue,
    woken: () => woken,
    add: (name: string, parts: LocalPod = {}) => queue.set(pod(name, parts)),
    take: () => queue.take()?.pod.name,
    fail: (name: string, ...changes: ClusterChange[]) => queue.failed(name, new Set(changes)),
  };
}

test('pods of higher priority come first, then those that have waited longer', (t) => {
  const { add, take, clock } = open();
  add('a');
  clock.advance(1);
  add('b', { priority: 5 });
  clock.advance(1);
  add('c');
  clock.advance(1);
  add('d', { priority: 5 });
  t.deepEqual([take(), take(), take(), take(), take()], ['b', 'd', 'a', 'c', undefined]);
});

test('an unschedulable pod waits for a change that concerns its filters', (t) => {
  const { add, take, fail, clock, queue, woken } = open();
  add('a');
  take();
  fail('a', 'NodeAdded', 'PodDeleted');
  clock.advance(20_000);
  const before = woken();
  queue.changed('NodeChanged');
  t.is(take(), undefined);
  queue.changed('PodDeleted');
  t.true(woken() > before);
  t.is(take(), 'a');
});

test('changes before an attempt do not cause another one', (t) => {
  const { add, take, fail, queue } = open();
  add('a');
  add('b');
  take();
  fail('a', 'NodeAdded');
  queue.changed('PodDeleted');
  t.is(take(), 'b');
  fail('b', 'PodDeleted');
  t.is(take(), undefined);
  t.is(queue.size('unschedulable'), 2);
});

test('the back-off grows from 1 s to 10 s with each attempt', (t) => {
  const { add, take, fail, clock, queue } = open();
  add('a');
  for (const expected of [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]) {
    t.is(take(), 'a');
    fail('a', 'NodeAdded');
    queue.changed('NodeAdded');
    t.is(take(), undefined);
    t.is(queue.size('backoff'), 1);
    clock.advance(expected - 1);
    t.is(take(), undefined);
    clock.advance(1);
  }
  t.is(take(), 'a');
});

test('a pod whose binding could not be written is retried after its back-off', (t) => {
  const { add, take, clock, queue } = open();
  add('a');
  take();
  queue.failedToWrite('a');
  t.is(take(), undefined);
  clock.advance(1_000);
  t.is(take(), 'a');
});

test('an unschedulable pod is retried after 5 minutes without any change', (t) => {
  const { add, take, fail, clock } = open();
  add('a');
  take();
  fail('a');
  clock.advance(299_999);
  t.is(take(), undefined);
  clock.advance(30_001);
  t.is(take(), 'a');
});

test('a pod with scheduling gates waits until its gates are removed', (t) => {
  const { add, take, queue } = open();
  add('a', { spec: { schedulingGates: [{ name: 'g' }] } });
  t.is(take(), undefined);
  t.is(queue.size('gated'), 1);
  add('a');
  t.is(take(), 'a');
  t.is(queue.size('attempted'), 1);
});

test('an update that can make a pod schedulable causes an attempt, another one does not', (t) => {
  const { add, take, fail, clock } = open();
  add('a');
  take();
  fail('a');
  clock.advance(1_000);
  add('a', { nominatedNodeName: 'n1' });
  t.is(take(), undefined);
  add('a', { nominatedNodeName: 'n1', spec: { tolerations: [{ operator: 'Exists' }] } });
  t.is(take(), 'a');
});

test('deleted pods are never scheduled, and each pod is in one queue', (t) => {
  const { add, take, fail, queue } = open();
  for (const name of ['a', 'b', 'c', 'd']) add(name);
  take();
  fail('a', 'NodeAdded');
  take();
  for (const name of ['a', 'b', 'c']) queue.delete(name);
  queue.changed('NodeAdded');
  queue.failedToWrite('b');
  t.is(take(), 'd');
  t.deepEqual(
    (['active', 'backoff', 'unschedulable', 'gated', 'attempted'] as const).map((place) => queue.size(place)),
    [0, 0, 0, 0, 1],
  );
});

test('the heap of waiting pods keeps its order under many additions and removals', (t) => {
  const { add, take, queue } = open();
  const priorities = Array.from({ length: 200 }, (_, at) => (at * 7_919) % 211);
  priorities.forEach((priority, at) => {
    add(`p${at}`, { priority });
  });
  for (let at = 0; at < 200; at += 3) queue.delete(`p${at}`);
  const expected = priorities.filter((_, at) => at % 3 !== 0).sort((a, b) => b - a);
  const taken: number[] = [];
  for (let name = take(); name !== undefined; name = take()) taken.push(priorities[Number(name.slice(1))] as number);
  t.deepEqual(taken, expected);
});
