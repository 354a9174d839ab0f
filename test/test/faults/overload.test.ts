import { checkHistory, describeVerdict, Workload } from '@keelson/conformance';
import test, { type ExecutionContext } from 'ava';
import { directoryFor, seed, sleep } from '../../src/faults/fault-run.ts';
import { FaultServer } from '../../src/faults/fault-server.ts';

const phaseMs = 3000;
/** On a slow machine a phase lasts until there are so many writes. */
const enough = 300;

/**
 * Acknowledged writes per second of so many writers that never pause, and how long the health check took at most, by
 * the same busy process.
 */
async function pushed(t: ExecutionContext, writers: number) {
  const server = await FaultServer.start({ data: await directoryFor(t) });
  t.teardown(() => server.stop());
  const options = {
    servers: [server.url],
    seed,
    readers: 0,
    watchers: 0,
    pauseMs: 0,
    names: 300,
    callTimeoutMs: 10_000,
  };
  const workload = new Workload({ ...options, writers });
  t.teardown(() => workload.stop());
  await workload.start();
  await sleep(500);
  const before = workload.acknowledged;
  const began = performance.now();
  let slowestHealthMs = 0;
  while (performance.now() - began < phaseMs || workload.acknowledged < enough) {
    const sentAt = performance.now();
    const answer = await fetch(`${server.url}/livez`, { signal: AbortSignal.timeout(60_000) });
    if (answer.status !== 200) throw new Error(`health check answered ${answer.status}`);
    await answer.text();
    slowestHealthMs = Math.max(slowestHealthMs, performance.now() - sentAt);
    await sleep(50);
  }
  const perSecond = ((workload.acknowledged - before) * 1000) / (performance.now() - began);
  await workload.finish();
  return {
    perSecond,
    slowestHealthMs,
    verdict: checkHistory(workload.recorder, { minWrites: enough, minEvents: enough * 2 }),
  };
}

test('sixteen times as many writers as needed: writes continue, health checks succeed, the history is correct', async (t) => {
  t.timeout(240_000);
  const normal = await pushed(t, 32);
  const flooded = await pushed(t, 512);
  const share = flooded.perSecond / normal.perSecond;
  t.log(
    `${normal.perSecond.toFixed(0)} writes/s by 32, ${flooded.perSecond.toFixed(0)} by 512 (${share.toFixed(2)})`,
    `health check ${flooded.slowestHealthMs.toFixed(0)} ms at most`,
  );
  for (const { verdict } of [normal, flooded]) t.is(verdict.verdict, 'ok', describeVerdict(verdict));
  // The clients share the processors with the server and with other tests: this detects a collapse, not the share
  // itself.
  t.true(share > 0.1, `${share}`);
});
