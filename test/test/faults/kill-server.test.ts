import { checkHistory, describeVerdict, Workload } from '@keelson/conformance';
import test from 'ava';
import { directoryFor, faults, progress, seed, sleep, startRun, until } from '../../src/faults/fault-run.ts';
import { FaultServer } from '../../src/faults/fault-server.ts';
import { compactedLmdb, shortHistory } from '../../src/faults/short-history.ts';

for (const [title, workers, kills] of [
  ['the server', 0, faults(3, 200)],
  ['the server with workers', 2, faults(2, 200)],
] as const)
  test(`kill -9 of ${title} at ${kills} random points under load: no lost write, no repeated revision, no incomplete watch`, async (t) => {
    t.timeout(120_000 + kills * 10_000);
    const data = await directoryFor(t);
    const server = await FaultServer.start({ data, adapter: compactedLmdb(data), workers });
    t.teardown(() => server.stop());
    const run = await startRun(t, { servers: [server.url], callTimeoutMs: 2000, pauseMs: 6 });
    const { workload, random } = run;
    const restarts: number[] = [];
    for (let kill = 1; kill <= kills; kill++) {
      await run.traffic(10 + random.below(60));
      await sleep(random.below(20));
      workload.recorder.mark(`kill ${kill}`);
      await server.kill();
      restarts.push(await server.restart());
      workload.recorder.mark('ready');
      progress(t, kill, kills, () => `revision ${workload.latest}, ${workload.acknowledged} writes acknowledged`);
    }
    const { counts } = await run.judge({
      faults: kills,
      retention: shortHistory,
      minWrites: kills * 10,
      minEvents: kills * 20,
    });
    t.log(`ready again after ${Math.round(Math.max(...restarts))} ms at most; ${counts.gone} watches ended with 410`);
    t.true(counts.resumed > kills, 'watches were resumed');
    t.true(counts.unknown > 0, 'kills interrupted running writes');
  });

test('the same run detects a server that loses its data', async (t) => {
  t.timeout(60_000);
  const server = await FaultServer.start({ data: await directoryFor(t), storage: 'memory:' });
  t.teardown(() => server.stop());
  const workload = new Workload({ servers: [server.url], seed, callTimeoutMs: 2000 });
  t.teardown(() => workload.stop());
  await workload.start();
  t.true(await until(() => workload.acknowledged > 50, 20_000));
  await server.kill();
  await server.restart();
  for (const name of ['work-a', 'work-b']) {
    await fetch(`${server.url}/api/v1/namespaces`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ metadata: { name } }),
    });
  }
  t.true(await until(() => workload.acknowledged > 100, 20_000));
  await workload.finish(3000);
  const verdict = checkHistory(workload.recorder);
  t.is(verdict.verdict, 'violations', describeVerdict(verdict));
  const found = new Set(verdict.violations.map(({ invariant }) => invariant));
  t.log(`${verdict.totalViolations} violations of ${[...found].join(', ')}`);
});
