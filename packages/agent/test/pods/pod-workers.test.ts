import { FakeClock } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import { listeningLogger } from '@keelson/test-support';
import test from 'ava';
import { newPodRecord, type PodWork, PodWorkers } from '../../src/pods/pod-workers.ts';
import { settle, testPod } from '../support/bench.ts';

/** Workers whose work is recorded, and waits where the test requests it. */
function workersOf(change: Partial<PodWork> = {}) {
  const clock = new FakeClock();
  const calls: string[] = [];
  const counts: number[] = [];
  const logger = listeningLogger();
  const work: PodWork = {
    sync: async (pod) => {
      calls.push(`sync ${pod.metadata?.name}`);
      return { final: false, againAfterMs: undefined };
    },
    end: async (_, pod, __, graceSeconds) => void calls.push(`end ${pod?.metadata?.name} ${graceSeconds}`),
    cleanUp: async (uid) => void calls.push(`clean ${uid}`),
    ended: (pod) => void calls.push(`ended ${pod.metadata?.name}`),
    ...change,
  };
  const workers = new PodWorkers({
    ...{ work, clock, logger, syncMs: 60_000, random: () => 0.5 },
    recordOf: () => newPodRecord({}),
    onCount: (count) => counts.push(count),
    onGone: (uid) => calls.push(`gone ${uid}`),
  });
  const taken = async () => {
    await settle(3);
    return calls.splice(0);
  };
  return { workers, clock, calls, counts, logger, taken };
}

const apiPod = (name: string) => testPod(name, {}, { 'kubernetes.io/config.source': 'api' });
const deleted = (pod: Pod, seconds: number): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: seconds },
});

test('a deleted pod is ended, cleaned up and released once, and its worker ends when its source removes it', async (t) => {
  const { workers, counts, taken } = workersOf();
  const pod = apiPod('web');
  const uid = pod.metadata?.uid ?? '';
  workers.update(pod);
  t.deepEqual(await taken(), ['sync web']);
  const worker = workers.get(uid);
  t.deepEqual([worker?.stage, worker?.leaving, [...workers.named('default/web')].length], ['active', false, 1]);
  workers.update(deleted(pod, 5));
  t.true(worker?.leaving);
  t.deepEqual(await taken(), ['end web 5', `clean ${uid}`, 'ended web']);
  workers.update(deleted(pod, 5));
  t.deepEqual([await taken(), worker?.stage, workers.size], [[], 'clean', 1]);
  workers.remove(uid);
  t.deepEqual([await taken(), worker?.stage, workers.size], [[`gone ${uid}`], 'gone', 0]);
  t.deepEqual(counts, [1, 0]);
  t.deepEqual([...workers.named('default/web')], []);
});

test('an evicted pod is cleaned up and keeps its object, until it is deleted too', async (t) => {
  const { workers, taken } = workersOf();
  const pod = apiPod('web');
  const uid = pod.metadata?.uid ?? '';
  workers.update(pod);
  await taken();
  const worker = workers.get(uid)!;
  const verdict = { phase: 'Failed', reason: 'Evicted', message: 'short of memory' } as const;
  await worker.evict(verdict, 3);
  t.is(worker.record.verdict, verdict);
  t.deepEqual(await taken(), ['end web 3', `clean ${uid}`]);
  t.is(worker.stage, 'clean');
  workers.update(deleted(pod, 0));
  t.deepEqual(await taken(), ['ended web']);
});

test('a caller that waits for an eviction is released when the agent stops', async (t) => {
  const { workers } = workersOf({
    end: (_, __, ___, ____, signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  });
  const pod = apiPod('web');
  workers.update(pod);
  const evicted = workers.get(pod.metadata?.uid ?? '')!.evict({ phase: 'Failed', reason: 'Evicted', message: '' }, 0);
  await settle(3);
  await workers.stop();
  await t.notThrowsAsync(evicted);
});

test('a shorter grace period interrupts a running termination, a longer one does not', async (t) => {
  const ends: (number | undefined)[] = [];
  let finish = () => {};
  const { workers, taken } = workersOf({
    end: (_, __, ___, graceSeconds, signal) =>
      new Promise((resolve, reject) => {
        ends.push(graceSeconds);
        finish = resolve;
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
  });
  const pod = apiPod('web');
  workers.update(deleted(pod, 30));
  await taken();
  for (const seconds of [30, 60, 10]) {
    workers.update(deleted(pod, seconds));
    await taken();
  }
  workers.remove(pod.metadata?.uid ?? '');
  await taken();
  t.deepEqual(ends, [30, 10]);
  finish();
  t.deepEqual(await taken(), [`clean ${pod.metadata?.uid}`, `gone ${pod.metadata?.uid}`], 'its object is already gone');
});

test('a pod is synced again after its period, earlier if a sync requests it, and later after a failure', async (t) => {
  let answer: number | undefined | 'final' | 'fails';
  let syncs = 0;
  const { workers, clock, logger, taken } = workersOf({
    sync: async () => {
      syncs += 1;
      if (answer === 'fails') throw new Error('no');
      return answer === 'final' ? { final: true, againAfterMs: undefined } : { final: false, againAfterMs: answer };
    },
  });
  const pod = apiPod('web');
  const pass = async (ms: number) => {
    clock.advance(ms);
    await taken();
    return syncs;
  };
  workers.update(pod);
  t.is(await pass(0), 1);
  t.deepEqual([await pass(74_999), await pass(1)], [1, 2], 'the period with its random part');
  await pass(50_000);
  answer = 5000;
  workers.requestSync(pod.metadata?.uid ?? '');
  t.is(await pass(0), 3);
  answer = undefined;
  t.is(await pass(5000), 4);
  t.is(await pass(74_999), 4, 'the end of the earlier period means nothing any more');
  answer = 5000;
  t.is(await pass(1), 5);
  answer = 'fails';
  t.deepEqual([await pass(4999), await pass(1)], [5, 6]);
  t.is(logger.lines.length, 1);
  t.deepEqual([await pass(12_499), await pass(1)], [6, 7]);
  answer = 'final';
  workers.pokeAll();
  t.is(await pass(0), 8);
  t.is(workers.get(pod.metadata?.uid ?? '')?.stage, 'resting');
  t.is(await pass(1_000_000), 8);
});

test('a static pod waits until another one with its name is removed; pods of the API do not', async (t) => {
  let finish = () => {};
  const { workers, taken } = workersOf({ end: () => new Promise((resolve) => (finish = resolve)) });
  const [first, second] = [testPod('web'), testPod('web')];
  workers.update(first);
  t.deepEqual(await taken(), ['sync web']);
  workers.remove(first.metadata?.uid ?? '');
  workers.update(second);
  workers.update(apiPod('web'));
  t.deepEqual(await taken(), ['sync web'], 'only that of the API');
  finish();
  t.deepEqual(await taken(), [`clean ${first.metadata?.uid}`, `gone ${first.metadata?.uid}`, 'sync web', 'sync web']);
});

test('a pod that exists only in the runtime is ended and removed', async (t) => {
  const { workers, taken } = workersOf();
  workers.removeOrphan('lost');
  workers.removeOrphan('lost');
  t.deepEqual(await taken(), ['end undefined undefined', 'clean lost', 'gone lost']);
  t.is(workers.size, 0);
});

test('workers that were stopped do nothing more', async (t) => {
  const { workers, clock, taken } = workersOf();
  const pod = apiPod('web');
  workers.update(pod);
  await taken();
  await workers.stop();
  workers.update(deleted(pod, 0));
  clock.advance(1_000_000);
  t.deepEqual(await taken(), []);
});
