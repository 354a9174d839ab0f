import { createHttpClient, LeaderElector } from '@keelson/client';
import type { KubeObject } from '@keelson/core';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { Lease } from '@keelson/kinds';
import { eventually, startTestPlane, type TestPlane } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';

let plane: TestPlane;
let url: string;

test.before(async () => {
  plane = await startTestPlane();
  ({ url } = await plane.listen());
});

test.after.always(() => plane.close());

/** Candidates of one lease, and the number of concurrent leaders. */
function election(t: ExecutionContext, name: string) {
  let leading = 0;
  let most = 0;
  const terms: string[] = [];
  const candidate = (identity: string) => {
    const client = createHttpClient({ server: url });
    const elector = new LeaderElector({
      client,
      namespace: 'default',
      name,
      identity,
      leaseDurationMs: 1_000,
      renewDeadlineMs: 600,
      retryPeriodMs: 100,
      clock: systemClock,
      logger: silentLogger,
      lead: async (signal) => {
        terms.push(identity);
        leading += 1;
        most = Math.max(most, leading);
        signal.addEventListener('abort', () => {
          leading -= 1;
        });
      },
    });
    t.teardown(async () => {
      await elector.stop();
      client.close();
    });
    elector.start();
    return { elector, client };
  };
  return { candidate, terms, most: () => most };
}

test('one of two candidates over HTTP leads, and the other takes over when it stops or fails', async (t) => {
  const { candidate, terms, most } = election(t, 'two');
  const a = candidate('a');
  await eventually(() => a.elector.isLeader);
  const b = candidate('b');
  await eventually(() => b.elector.leader === 'a');
  await a.elector.stop();
  await eventually(() => b.elector.isLeader);
  const c = candidate('c');
  await eventually(() => c.elector.leader === 'b');
  // Without connections, b can neither renew nor release the lease: c has to wait until the lease expires.
  b.client.close();
  await eventually(() => c.elector.isLeader);
  t.false(b.elector.isLeader);
  t.deepEqual(terms, ['a', 'b', 'c']);
  t.is(most(), 1);
  const lease = (await plane.client(Lease).namespace('default').get('two')) as KubeObject & {
    spec?: { holderIdentity?: string; leaseTransitions?: number; leaseDurationSeconds?: number };
  };
  t.like(lease.spec, { holderIdentity: 'c', leaseTransitions: 2, leaseDurationSeconds: 1 });
});

test('many concurrent candidates never have two leaders', async (t) => {
  const { candidate, terms, most } = election(t, 'many');
  const all = Array.from({ length: 6 }, (_, at) => candidate(`c${at}`));
  for (let left = all.length; left > 0; left -= 1) {
    const leader = await eventually(() => all.find(({ elector }) => elector.isLeader));
    all.splice(all.indexOf(leader), 1);
    await leader.elector.stop();
  }
  t.is(new Set(terms).size, 6);
  t.is(most(), 1);
});
