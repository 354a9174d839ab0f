import { randomUUID } from 'node:crypto';
import { type ApiClient, type KubeObject, statusErrors } from '@keelson/core';
import { FakeClock, silentLogger } from '@keelson/core/runtime';
import test, { type ExecutionContext } from 'ava';
import { LeaderElector, type LeaderElectorOptions } from '../../src/leader-election/leader-elector.ts';
import type { LeaseObject } from '../../src/leader-election/lease-record.ts';

const resource = { group: 'coordination.k8s.io', resource: 'leases' };

/** Leases of a namespace with optimistic locking, and faults to order. */
class FakeLeases {
  readonly stored = new Map<string, LeaseObject>();
  /** Every request that arrived, as `method name`. */
  readonly requests: string[] = [];
  /** Thrown instead of a response, before the request is executed. */
  fault: ((method: string) => Error | undefined) | undefined;
  /** While set, requests wait for it. */
  gate: Promise<void> | undefined;
  #version = 0;

  /** The API as one candidate reaches it. */
  client(link: { down: boolean } = { down: false }): ApiClient {
    const call = async <T>(method: string, name: string, run: () => T): Promise<T> => {
      this.requests.push(`${method} ${name}`);
      if (this.gate !== undefined) await this.gate;
      if (link.down) throw new Error('network down');
      const fault = this.fault?.(method);
      if (fault) throw fault;
      return structuredClone(run());
    };
    const store = (name: string, object: LeaseObject, uid: string): LeaseObject => {
      this.#version += 1;
      const stored = { ...object, metadata: { ...object.metadata, uid, resourceVersion: String(this.#version) } };
      this.stored.set(name, structuredClone(stored));
      return stored;
    };
    const leases = {
      namespace: () => leases,
      get: (name: string) =>
        call('get', name, () => {
          const found = this.stored.get(name);
          if (found === undefined) throw statusErrors.notFound(resource, name);
          return found;
        }),
      create: (object: LeaseObject) => {
        const name = object.metadata?.name ?? '';
        return call('create', name, () => {
          if (this.stored.has(name)) throw statusErrors.alreadyExists(resource, name);
          return store(name, object, randomUUID());
        });
      },
      update: (object: LeaseObject) => {
        const name = object.metadata?.name ?? '';
        return call('update', name, () => {
          const found = this.stored.get(name);
          if (found === undefined) throw statusErrors.notFound(resource, name);
          if (found.metadata?.resourceVersion !== object.metadata?.resourceVersion) {
            throw statusErrors.conflict(resource, name, 'the object has been modified');
          }
          return store(name, object, found.metadata?.uid ?? '');
        });
      },
    };
    return { dynamic: () => leases } as unknown as ApiClient;
  }

  get lease(): LeaseObject | undefined {
    return this.stored.get('lock');
  }
}

const turns = async () => {
  for (let at = 0; at < 30; at += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** Advances the clock in small steps, with requests in between. */
async function pass(ms: number, ...clocks: FakeClock[]): Promise<void> {
  for (let left = ms; left > 0; left -= 250) {
    for (const clock of clocks) clock.advance(Math.min(250, left));
    await turns();
  }
}

interface Candidate {
  readonly elector: LeaderElector;
  readonly clock: FakeClock;
  readonly link: { down: boolean };
  readonly notified: string[];
}

function candidate(
  t: ExecutionContext,
  leases: FakeLeases,
  identity: string,
  clock = new FakeClock(),
  options: Partial<LeaderElectorOptions> = {},
): Candidate {
  const notified: string[] = [];
  const link = { down: false };
  const elector = new LeaderElector({
    client: leases.client(link),
    namespace: 'n',
    name: 'lock',
    identity,
    lead: async (signal) => {
      notified.push('leads');
      signal.addEventListener('abort', () => notified.push('ends'));
    },
    onLost: () => notified.push('lost'),
    onLeader: (leader) => notified.push(`leader ${leader}`),
    clock,
    logger: silentLogger,
    ...options,
  });
  t.teardown(async () => {
    link.down = false;
    leases.gate = undefined;
    const stopping = elector.stop();
    await pass(20_000, clock);
    await stopping;
  });
  return { elector, clock, link, notified };
}

test('the first candidate leads and renews, the second waits; stopping releases the lease at once', async (t) => {
  const leases = new FakeLeases();
  const clock = new FakeClock();
  const a = candidate(t, leases, 'a', clock);
  a.elector.start();
  await turns();
  t.true(a.elector.isLeader);
  t.like(leases.lease?.spec, { holderIdentity: 'a', leaseDurationSeconds: 15, leaseTransitions: 0 });
  const { acquireTime, renewTime } = leases.lease?.spec ?? {};
  t.regex(String(acquireTime), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  const b = candidate(t, leases, 'b', clock);
  b.elector.start();
  await pass(60_000, clock);
  t.true(a.elector.isLeader);
  t.false(b.elector.isLeader);
  t.is(b.elector.leader, 'a');
  t.is(leases.lease?.spec?.acquireTime, acquireTime);
  t.not(leases.lease?.spec?.renewTime, renewTime);
  t.false(leases.requests.slice(2).filter((request) => request.startsWith('update')).length === 0);
  await a.elector.stop();
  t.is(leases.lease?.spec?.holderIdentity, '');
  t.deepEqual(a.notified, ['leader a', 'leads', 'ends', 'leader ']);
  await pass(3_000, clock);
  t.true(b.elector.isLeader);
  t.like(leases.lease?.spec, { holderIdentity: 'b', leaseTransitions: 1 });
  t.deepEqual(b.notified.slice(-2), ['leader b', 'leads']);
});

test('a leader that cannot reach the server stops before another begins', async (t) => {
  const leases = new FakeLeases();
  const clock = new FakeClock();
  const a = candidate(t, leases, 'a', clock);
  a.elector.start();
  await turns();
  const b = candidate(t, leases, 'b', clock);
  b.elector.start();
  await pass(5_000, clock);
  a.link.down = true;
  let both = 0;
  let none = 0;
  for (let at = 0; at < 200 && !b.elector.isLeader; at += 1) {
    await pass(250, clock);
    if (a.elector.isLeader && b.elector.isLeader) both += 1;
    if (!a.elector.isLeader && !b.elector.isLeader) none += 1;
  }
  t.is(both, 0);
  t.true(none > 5, 'the leader stops well before the lease ends');
  t.true(b.elector.isLeader);
  t.deepEqual(a.notified.slice(0, 4), ['leader a', 'leads', 'ends', 'lost']);
  a.link.down = false;
  await pass(10_000, clock);
  t.false(a.elector.isLeader);
  t.is(a.elector.leader, 'b');
});

test('requests that hang do not extend the term of a leader', async (t) => {
  const leases = new FakeLeases();
  const a = candidate(t, leases, 'a');
  a.elector.start();
  await turns();
  let open: () => void = () => {};
  leases.gate = new Promise((resolve) => {
    open = resolve;
  });
  await pass(12_000, a.clock);
  t.false(a.elector.isLeader);
  leases.gate = undefined;
  open();
  await pass(3_000, a.clock);
  t.true(a.elector.isLeader, 'and it leads again when they come through');
});

test('clocks that are hours apart, or jump, do not affect the election', async (t) => {
  const leases = new FakeLeases();
  const early = new FakeClock(Date.UTC(2026, 0, 1));
  const late = new FakeClock(Date.UTC(2026, 0, 1) + 7 * 3_600_000);
  const a = candidate(t, leases, 'a', early);
  const b = candidate(t, leases, 'b', late);
  a.elector.start();
  await turns();
  b.elector.start();
  await pass(40_000, early, late);
  early.jump(-86_400_000);
  late.jump(86_400_000);
  await pass(40_000, early, late);
  t.true(a.elector.isLeader);
  t.deepEqual(b.notified, ['leader a']);
});

test('an abandoned lease is acquired when it has not changed for the duration that it contains', async (t) => {
  const leases = new FakeLeases();
  await leases
    .client()
    .dynamic({ group: '', version: '', resource: '' })
    .create({
      metadata: { name: 'lock' },
      spec: { holderIdentity: 'dead', leaseDurationSeconds: 40, renewTime: '2001-01-01T00:00:00.000000Z' },
    } as KubeObject);
  const { elector, clock } = candidate(t, leases, 'a');
  elector.start();
  await pass(39_000, clock);
  t.false(elector.isLeader);
  await pass(4_000, clock);
  t.true(elector.isLeader);
  t.is(leases.lease?.spec?.leaseTransitions, 1);
});

test('a leader whose lease is taken over or deleted stops leading at its next renewal', async (t) => {
  const leases = new FakeLeases();
  const { elector, clock, notified } = candidate(t, leases, 'a');
  elector.start();
  await turns();
  leases.stored.delete('lock');
  await pass(3_000, clock);
  t.true(elector.isLeader, 'a deleted lease is made anew');
  const thief = leases.client().dynamic({ group: '', version: '', resource: '' });
  await thief.update({ ...leases.lease, spec: { ...leases.lease?.spec, holderIdentity: 'thief' } } as KubeObject);
  await pass(3_000, clock);
  t.false(elector.isLeader);
  t.true(notified.includes('lost'));
  t.is(elector.leader, 'thief');
});

test('of many candidates at once exactly one leads, and each leads in its turn', async (t) => {
  const leases = new FakeLeases();
  const clock = new FakeClock();
  const all = ['a', 'b', 'c', 'd', 'e'].map((identity) => candidate(t, leases, identity, clock));
  for (const { elector } of all) elector.start();
  const left = new Set(all);
  while (left.size > 0) {
    await pass(4_000, clock);
    const leading = [...left].filter(({ elector }) => elector.isLeader);
    t.is(leading.length, 1);
    const [leader] = leading as [Candidate];
    left.delete(leader);
    await leader.elector.stop();
  }
});

test('work that fails releases the lease; the next term and the release wait until the work has ended', async (t) => {
  const leases = new FakeLeases();
  const clock = new FakeClock();
  let terms = 0;
  let finish: () => void = () => {};
  const { elector } = candidate(t, leases, 'a', clock, {
    lead: async (signal) => {
      terms += 1;
      if (terms === 1) throw new Error('bad start');
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
    },
  });
  elector.start();
  await turns();
  t.false(elector.isLeader);
  t.is(leases.lease?.spec?.holderIdentity, '');
  await pass(3_000, clock);
  t.true(elector.isLeader);
  let stopped = false;
  const stopping = elector.stop().then(() => {
    stopped = true;
  });
  await turns();
  t.false(stopped);
  t.is(leases.lease?.spec?.holderIdentity, 'a');
  finish();
  await stopping;
  t.is(leases.lease?.spec?.holderIdentity, '');
});

test('contradictory durations are rejected', (t) => {
  const leases = new FakeLeases();
  const make = (options: Partial<LeaderElectorOptions>) => () =>
    candidate(t, leases, options.identity ?? 'a', new FakeClock(), options);
  t.throws(make({ renewDeadlineMs: 15_000 }), { message: /renewDeadlineMs < leaseDurationMs/ });
  t.throws(make({ retryPeriodMs: 9_000 }), { message: /retryPeriodMs/ });
  t.throws(make({ retryPeriodMs: 0 }));
  t.throws(make({ identity: '' }), { message: /identity/ });
});
