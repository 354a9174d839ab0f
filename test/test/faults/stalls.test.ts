import { readFile } from 'node:fs/promises';
import test from 'ava';
import { directoryFor, faults, progress, sleep, startRun } from '../../src/faults/fault-run.ts';
import { FaultServer } from '../../src/faults/fault-server.ts';
import { compactedLmdb, shortHistory } from '../../src/faults/short-history.ts';
import { SlowWatcher } from '../../src/faults/slow-watcher.ts';

const pauses = faults(3, 50);

test.serial(`${pauses} SIGSTOPs of the server: no stale read afterwards, no gap in a watch`, async (t) => {
  t.timeout(120_000 + pauses * 10_000);
  const data = await directoryFor(t);
  const server = await FaultServer.start({ data, adapter: compactedLmdb(data) });
  t.teardown(() => server.stop());
  const run = await startRun(t, { servers: [server.url], callTimeoutMs: 800 });
  for (let pause = 1; pause <= pauses; pause++) {
    await run.traffic(30 + run.random.below(60));
    run.workload.recorder.mark('SIGSTOP');
    server.pause();
    // Every second pause is longer than a call may take.
    await sleep((pause % 2 === 0 ? 200 : 1000) + run.random.below(700));
    server.resume();
    run.workload.recorder.mark('SIGCONT');
    progress(t, pause, pauses, () => `revision ${run.workload.latest}`);
  }
  const { counts } = await run.judge({
    faults: pauses,
    retention: shortHistory,
    minWrites: pauses * 30,
    minEvents: pauses * 60,
  });
  t.true(counts.unknown > 0, 'calls timed out while the server was stopped');
  const historyReads = await server.historyReads();
  t.log(`${historyReads} watches read from the history of the store`);
  t.true(historyReads > 0);
});

async function residentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
}

const slow = 40;

test.serial(
  `${slow} watchers that read one byte a second or nothing cause neither lost events of others nor memory growth`,
  async (t) => {
    t.timeout(120_000);
    const server = await FaultServer.start({ data: await directoryFor(t) });
    t.teardown(() => server.stop());
    const run = await startRun(t, {
      servers: [server.url],
      writers: 6,
      readers: 1,
      watchers: 2,
      pauseMs: 20,
      valueBytes: 30_000,
    });
    await sleep(1000);
    const before = await residentMiB(server.pid);
    const from = run.workload.acknowledged;
    const watchers = Array.from({ length: slow }, (_, index) => {
      const path = index % 2 === 0 ? '/api/v1/configmaps' : '/apis/suite.keelson.dev/v1/parts';
      return new SlowWatcher(`${server.url}${path}?watch=1`, index % 4 === 0 ? 0 : 1);
    });
    t.teardown(() => {
      for (const watcher of watchers) watcher.close();
    });
    await sleep(8000 * faults(1, 5));
    await run.traffic(100);
    const after = await residentMiB(server.pid);
    // Mean value 15 kB, and each slow watcher sees half of all writes.
    const queued = ((run.workload.acknowledged - from) * slow * 15_000) / 2 / 1024 / 1024;
    t.log(
      `resident ${before.toFixed(0)} MiB before, ${after.toFixed(0)} MiB after; ${queued.toFixed(0)} MiB were due to slow watchers`,
    );
    t.true(after - before < Math.max(200, queued / 2), 'unread events of slow watchers are not buffered');
    await run.judge({ faults: slow, minWrites: 100, minEvents: 200 });
  },
);
