import type { StorageError } from '@keelson/core';
import { type Clock, FakeClock, noMetrics, silentLogger, systemClock } from '@keelson/core/runtime';
import type { Revision } from '@keelson/core/storage-adapter';
import { WireReader } from '@keelson/protobuf-wire';
import test from 'ava';
import type { Cluster } from '../src/net/cluster.ts';
import type { WatchHandler } from '../src/net/endpoint.ts';
import { EtcdMetrics } from '../src/net/etcd-metrics.ts';
import type { WatchTraits } from '../src/net/server-version.ts';
import { ProgressSeeker, type ProgressSource } from '../src/watch/progress-seeker.ts';
import { UpstreamWatch } from '../src/watch/upstream-watch.ts';
import { KeySpace } from '../src/wire/key-space.ts';
import type { WatchEvent, WatchFrame } from '../src/wire/watch-response.ts';
import { until } from './support/following.ts';

const keys = new KeySpace('/p/');
const modern: WatchTraits = { progress: true, answersWhenIdle: true };
const old: WatchTraits = { progress: false, answersWhenIdle: true };

/** The server side of a stream, simulated by the test. */
class FakeCall {
  #handler: WatchHandler | undefined;
  readonly requests: Buffer[] = [];
  paused = false;
  canceled = false;

  listen(handler: WatchHandler): void {
    this.#handler = handler;
  }

  /** Breaks the stream. */
  fail(error: Error): void {
    this.#handler?.ended(error);
  }

  /** Ends the stream. */
  end(): void {
    this.#handler?.ended(undefined);
  }

  write(request: Buffer): void {
    this.requests.push(request);
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }

  cancel(): void {
    this.canceled = true;
  }

  send(frame: Partial<WatchFrame>, revision = 0): void {
    const header = { clusterId: '1', revision };
    const empty = {
      toStream: false,
      created: false,
      canceled: false,
      compactRevision: 0,
      cancelReason: '',
      fragment: false,
    };
    this.#handler?.frame({ ...empty, events: [], sizeBytes: 100, header, ...frame });
  }

  /** The requested start revision of the watch. */
  get start(): number {
    const reader = new WireReader(this.requests[0] as Buffer);
    reader.next();
    return reader.within((create) => {
      for (let field = create.next(); field !== 0; field = create.next()) {
        if (field === 3) return create.integer();
        create.skip();
      }
      return 0;
    });
  }

  /** Progress requests so far. */
  get requested(): number {
    return this.requests.filter((request) => new WireReader(request).next() === 3).length;
  }
}

function event(revision: number, name = 'a', created = revision): WatchEvent {
  const kv = {
    key: Buffer.from(`/p/${name}`),
    createRevision: created,
    modRevision: revision,
    version: 1,
    leased: false,
  };
  return { deleted: false, kv: { ...kv, value: Buffer.from(`v${revision}`) }, prev: undefined };
}

function play(after: Revision, traits: WatchTraits = modern, clock: Clock = systemClock) {
  const calls: FakeCall[] = [];
  const batches: { revisions: number[]; frontier: number }[] = [];
  const failures: StorageError[] = [];
  const cluster = {
    watch: async () => {
      const call = new FakeCall();
      calls.push(call);
      return { endpoint: {}, call, traits };
    },
    leave: () => {},
  } as unknown as Cluster;
  const metrics = new EtcdMetrics(noMetrics, clock);
  const lineage = { highest: 0, recovery: undefined, check: () => {}, confirmed: () => {}, recordWritten: () => {} };
  const environment = { cluster, keys, lineage, logger: silentLogger, metrics, clock };
  const upstream = new UpstreamWatch(environment, {
    after,
    prevKv: false,
    onChanges: (changes, frontier) => batches.push({ revisions: changes.map((change) => change.revision), frontier }),
    onFailure: (error) => failures.push(error),
  });
  const call = async (index: number) => {
    await until(() => (calls[index]?.requests.length ?? 0) > 0, `stream ${index} is open`);
    return calls[index] as FakeCall;
  };
  return { upstream, environment, calls, call, batches, failures };
}

test('after an interruption the watch resumes after the last delivered change, not after a header revision', async (t) => {
  const { upstream, call, batches } = play(10);
  t.teardown(() => upstream.close());
  const first = await call(0);
  t.is(first.start, 11);
  first.send({ created: true }, 5000);
  first.fail(new Error('cut'));
  const second = await call(1);
  t.is(second.start, 11, 'the revision of created does not count as delivered');
  second.send({ created: true }, 5000);
  second.send({ events: [event(12), event(20)] }, 5000);
  second.end();
  const third = await call(2);
  t.is(third.start, 21);
  third.send({ created: true }, 5000);
  third.send({ events: [event(12), event(20), event(21)] }, 5000);
  t.deepEqual(batches, [
    { revisions: [12, 20], frontier: 20 },
    { revisions: [21], frontier: 21 },
  ]);
});

test('fragments are delivered by complete revisions, and revisions left incomplete are read again', async (t) => {
  const { upstream, call, batches } = play(0);
  t.teardown(() => upstream.close());
  const first = await call(0);
  first.send({ created: true });
  first.send({ events: [event(1, 'a'), event(2, 'a'), event(2, 'b')], fragment: true }, 9);
  first.send({ events: [event(2, 'c')], fragment: true }, 9);
  first.send({ events: [event(2, 'd'), event(3, 'a')], fragment: true }, 9);
  t.deepEqual(batches, [
    { revisions: [1], frontier: 1 },
    { revisions: [2, 2, 2, 2], frontier: 2 },
  ]);
  first.fail(new Error('cut'));
  const second = await call(1);
  t.is(second.start, 3);
  second.send({ created: true });
  second.send({ events: [event(3, 'a')], fragment: true }, 9);
  second.send({ events: [event(3, 'b'), event(4, 'a')], fragment: false }, 9);
  t.deepEqual(batches.at(-1), { revisions: [3, 3, 4], frontier: 4 });
});

test('progress is accepted from servers that order it with changes, never within an incomplete revision', async (t) => {
  const modernPlay = play(10);
  const oldPlay = play(10, old);
  t.teardown(() => {
    modernPlay.upstream.close();
    oldPlay.upstream.close();
  });
  const call = await modernPlay.call(0);
  call.send({ created: true }, 30);
  call.send({ toStream: true }, 30);
  t.is(modernPlay.upstream.position, 30);
  call.send({ toStream: true }, 20);
  t.is(modernPlay.upstream.position, 30, 'the position never decreases');
  call.send({ events: [event(31)], fragment: true }, 40);
  call.send({ toStream: true }, 40);
  t.is(modernPlay.upstream.position, 30);
  call.send({ events: [event(31, 'b')] }, 40);
  t.is(modernPlay.upstream.position, 31);
  const oldCall = await oldPlay.call(0);
  oldCall.send({ created: true }, 30);
  oldCall.send({ toStream: true }, 30);
  t.is(oldPlay.upstream.position, 10, 'a response may precede earlier changes');
  oldCall.send({}, 30);
  t.is(oldPlay.upstream.position, 30, 'a notification of the server does not');
});

test('a watch below the compacted revision fails with Compacted and that revision; other cancellations are retried', async (t) => {
  const { upstream, call, failures } = play(10);
  t.teardown(() => upstream.close());
  (await call(0)).send({ canceled: true, cancelReason: 'etcdserver: no leader' });
  const second = await call(1);
  t.deepEqual(failures, []);
  second.send({ canceled: true, compactRevision: 400 });
  await until(() => failures.length > 0, 'the failure is reported');
  t.like(failures[0], { code: 'Compacted', revision: 400 });
  t.true(second.canceled);
});

test('a paused consumer pauses the stream, also the next one', async (t) => {
  const { upstream, call } = play(10);
  t.teardown(() => upstream.close());
  const first = await call(0);
  upstream.pause();
  t.true(first.paused);
  first.fail(new Error('cut'));
  const second = await call(1);
  t.true(second.paused);
  upstream.resume();
  t.false(second.paused);
});

test('progress of new servers is requested on the stream, repeatedly; for old servers a record is written', async (t) => {
  let marks = 0;
  const source: ProgressSource = {
    latest: async () => 20,
    writeMark: async () => {
      marks++;
    },
  };
  const modernPlay = play(10);
  const oldPlay = play(10, old);
  const lackingPlay = play(10);
  const seekers = [modernPlay, oldPlay, lackingPlay].map(
    ({ upstream, environment }) => new ProgressSeeker(upstream, source, environment),
  );
  t.teardown(() => {
    for (const seeker of seekers) seeker.stop();
    for (const { upstream } of [modernPlay, oldPlay, lackingPlay]) upstream.close();
  });
  const call = await modernPlay.call(0);
  const oldCall = await oldPlay.call(0);
  const lackingCall = await lackingPlay.call(0);
  for (const opened of [call, oldCall, lackingCall]) opened.send({ created: true }, 20);
  seekers[0]?.want(20);
  await until(() => call.requested >= 2, 'progress is requested twice');
  call.send({ toStream: true }, 20);
  const { requested } = call;
  seekers[0]?.want(15);
  seekers[1]?.want(500);
  seekers[2]?.want(500);
  await until(() => lackingCall.requested >= 3, 'progress is requested until it is reached');
  t.is(call.requested, requested, 'no progress is requested for a reached revision');
  t.is(marks, 0);
  seekers[1]?.stop();
  const again = new ProgressSeeker(oldPlay.upstream, source, oldPlay.environment);
  again.want(20);
  await until(() => marks > 0, 'a record is written');
  again.stop();
  t.is(oldCall.requested, 0);
});

test('progress is requested on a silent stream, which is replaced when it stays silent or is not confirmed in time', async (t) => {
  const clock = new FakeClock();
  const { upstream, calls, call } = play(10, modern, clock);
  t.teardown(() => upstream.close());
  const replaced = async (index: number) => {
    await until(() => calls[index]?.canceled === true, `stream ${index} is closed`);
    await until(() => {
      clock.advance(20);
      return calls.length > index + 1;
    }, 'another stream is opened after a pause');
  };
  const first = await call(0);
  clock.advance(5000);
  t.false(first.canceled, 'etcd has five seconds to confirm the watch');
  clock.advance(2500);
  await replaced(0);
  const second = await call(1);
  second.send({ created: true }, 10);
  clock.advance(10_000);
  t.is(second.requested, 0);
  clock.advance(2500);
  t.is(second.requested, 1, 'progress is requested after ten seconds without a frame');
  second.send({ toStream: true }, 10);
  clock.advance(10_000);
  t.is(second.requested, 1, 'a frame restarts the interval');
  upstream.pause();
  clock.advance(60_000);
  t.false(second.canceled, 'a paused stream receives no frames and is not silent');
  upstream.resume();
  clock.advance(25_000);
  t.false(second.canceled);
  clock.advance(2500);
  await replaced(1);
});

test('a watch on a server that does not respond on idle streams is never closed as silent', async (t) => {
  const clock = new FakeClock();
  const { upstream, call } = play(10, { progress: true, answersWhenIdle: false }, clock);
  t.teardown(() => upstream.close());
  const only = await call(0);
  only.send({ created: true }, 10);
  clock.advance(300_000);
  t.false(only.canceled);
  t.is(only.requested, 0);
});
