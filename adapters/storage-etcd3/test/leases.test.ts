import { FakeClock } from '@keelson/core/runtime';
import test from 'ava';
import { Leases } from '../src/leases.ts';
import { encodeLeaseGrant } from '../src/wire/requests.ts';

/** Leases of an etcd that grants the requested times to live, or the given ones. */
function leasesOf(granted: readonly number[] = []) {
  const clock = new FakeClock();
  const requested: Buffer[] = [];
  const failures: Error[] = [];
  const cluster = {
    read: async (_method: string, body: Buffer) => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      requested.push(body);
      return { id: BigInt(requested.length), ttlSeconds: granted[requested.length - 1] ?? 12 };
    },
  };
  let counted = 0;
  const leases = new Leases(cluster as never, { lease: () => (counted += 1) }, clock);
  const lease = async (ttlMs: number) => Number(await leases.for(ttlMs, {}));
  return { clock, requested, failures, leases, lease, counted: () => counted };
}

test('keys that expire in the same window share a lease, whose duration has a margin of five percent and one second', async (t) => {
  const { clock, requested, lease, counted } = leasesOf();
  t.deepEqual(await Promise.all([lease(10_000), lease(10_000)]), [1, 1]);
  t.deepEqual(requested[0], encodeLeaseGrant(12));
  clock.advance(2000);
  t.is(await lease(10_000), 1, 'the lease ends after twelve seconds');
  clock.advance(1);
  t.is(await lease(10_000), 2);
  t.is(await lease(20_000), 3, 'another time to live');
  t.deepEqual(requested[2], encodeLeaseGrant(22));
  t.is(counted(), 3);
});

test('a lease has at most a thousand keys', async (t) => {
  const { lease } = leasesOf();
  for (let key = 0; key < 1000; key += 1) t.is(await lease(10_000), 1);
  t.is(await lease(10_000), 2);
});

test('a lease that etcd grants for longer serves keys for longer, and a forgotten one serves none', async (t) => {
  const { clock, leases, lease } = leasesOf([60]);
  t.is(await lease(10_000), 1);
  clock.advance(50_000);
  t.is(await lease(10_000), 1);
  leases.forget();
  t.is(await lease(10_000), 2);
});

test('a failed grant is not cached', async (t) => {
  const { failures, lease } = leasesOf();
  failures.push(new Error('no leader'));
  await t.throwsAsync(lease(10_000), { message: 'no leader' });
  t.is(await lease(10_000), 1);
});

test('the maximum time to live is that of etcd', async (t) => {
  const { requested, lease } = leasesOf();
  await lease(Number.MAX_SAFE_INTEGER);
  t.deepEqual(requested[0], encodeLeaseGrant(9_000_000_000));
});
