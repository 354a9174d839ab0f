import { FakeClock } from '@keelson/core/runtime';
import test from 'ava';
import {
  boundedCall,
  type CallOptions,
  type ContainerEngine,
  decorateEngine,
  EventFeed,
  isRuntimeError,
  RuntimeError,
  type RuntimeEvent,
  withDeadlines,
  withMetrics,
} from '../src/index.ts';

const created = (containerId: string): RuntimeEvent => ({
  type: 'containerCreated',
  containerId,
  sandboxId: 's',
  at: 0,
});

/** An engine whose `status` never resolves and whose `version` fails. */
function engineOf(signals: AbortSignal[] = []): ContainerEngine {
  const hang = (options?: { signal?: AbortSignal }) => {
    if (options?.signal !== undefined) signals.push(options.signal);
    return new Promise<never>(() => {});
  };
  const runtime = {
    name: 'test',
    capabilities: {},
    streaming: {},
    status: hang,
    stopContainer: (_id: string, _request: object, options?: object) => hang(options),
    version: async () => {
      throw new RuntimeError('Unavailable', 'down');
    },
    [Symbol.asyncDispose]: async () => {},
  };
  return { runtime, images: { listImages: async () => [] } } as unknown as ContainerEngine;
}

test('a call ends by its own deadline or by the default one, and the signal of the callee is aborted', async (t) => {
  const clock = new FakeClock();
  const signals: AbortSignal[] = [];
  const { runtime } = withDeadlines(engineOf(signals), { clock, defaultTimeoutMs: 5000 });
  const own = runtime.status({ timeoutMs: 1000 });
  const byDefault = runtime.status();
  clock.advance(1000);
  await t.throwsAsync(own, { code: 'DeadlineExceeded' } as object);
  t.deepEqual(
    signals.map((signal) => signal.aborted),
    [true, false],
  );
  clock.advance(4000);
  await t.throwsAsync(byDefault, { code: 'DeadlineExceeded' } as object);
});

test('a graceful stop has no default deadline', async (t) => {
  const clock = new FakeClock();
  const { runtime } = withDeadlines(engineOf(), { clock, defaultTimeoutMs: 5000 });
  const stopping = runtime.stopContainer('c', { gracePeriodMs: 60_000 });
  clock.advance(50_000);
  const winner = await Promise.race([
    stopping.catch(() => 'failed'),
    new Promise((resolve) => setImmediate(resolve, 'waiting')),
  ]);
  t.is(winner, 'waiting');
});

test('the signal of a caller aborts the call, before it starts and while it runs', async (t) => {
  const clock = new FakeClock();
  const controller = new AbortController();
  const call = boundedCall(clock, 'status', { signal: controller.signal }, () => new Promise(() => {}));
  controller.abort();
  await t.throwsAsync(call, { code: 'Aborted' } as object);
  let ran = false;
  const run = async () => {
    ran = true;
  };
  await t.throwsAsync(boundedCall(clock, 'status', { signal: controller.signal }, run), { code: 'Aborted' } as object);
  t.false(ran);
});

test('the signal of a call is the same when it is read late or passed on through more decorators', async (t) => {
  const clock = new FakeClock();
  const caller = new AbortController();
  let given: CallOptions = {};
  let copied: CallOptions = {};
  const call = boundedCall(clock, 'status', { signal: caller.signal }, (outer) => {
    given = outer;
    copied = { ...outer };
    return boundedCall(clock, 'status', copied, () => new Promise(() => {}));
  });
  t.false(copied.signal?.aborted);
  caller.abort();
  await t.throwsAsync(call, { code: 'Aborted' } as object);
  t.true(copied.signal?.aborted);
  t.is(given.signal, copied.signal);
  let late: CallOptions = {};
  const unheeded = boundedCall(clock, 'status', { timeoutMs: 1000 }, (options) => {
    late = options;
    return new Promise(() => {});
  });
  clock.advance(1000);
  await t.throwsAsync(unheeded, { code: 'DeadlineExceeded' } as object);
  t.true(late.signal?.aborted);
});

test('a decorated runtime has only the optional methods of the original', (t) => {
  const { runtime } = decorateEngine(engineOf(), (_call, options, run) => run(options));
  t.false('events' in runtime);
  t.false('updateContainerResources' in runtime);
  t.deepEqual(runtime.streaming, {});
});

test('metrics count calls and failures by code', async (t) => {
  const seen: string[] = [];
  const note = (kind: string) => (_value: number, labels: object | undefined) =>
    void seen.push(`${kind} ${JSON.stringify(labels)}`);
  const metrics = {
    counter: () => ({ add: note('failed') }),
    histogram: () => ({ observe: note('took') }),
    gauge: () => ({ set: () => {}, add: () => {} }),
    text: async () => '',
  };
  const { runtime, images } = withMetrics(engineOf(), { metrics, clock: new FakeClock() });
  await images.listImages();
  await t.throwsAsync(runtime.version(), { message: 'down' });
  t.deepEqual(seen, [
    'took {"runtime":"test","call":"listImages"}',
    'failed {"runtime":"test","call":"version","code":"Unavailable"}',
    'took {"runtime":"test","call":"version"}',
  ]);
});

test('errors are recognised across copies of the package, and by code', (t) => {
  const error = new RuntimeError('NotFound', 'x', { cause: 1 });
  t.true(isRuntimeError(error));
  t.true(isRuntimeError({ ...error, code: 'NotFound', [Symbol.for('keelson.RuntimeError')]: true }, 'NotFound'));
  t.false(isRuntimeError(error, 'Internal'));
  t.false(isRuntimeError(new Error('NotFound')));
});

test('an event stream that falls too far behind receives a resync instead of growing', async (t) => {
  const feed = new EventFeed(() => 42, 3);
  const stream = feed.stream()[Symbol.asyncIterator]();
  for (let index = 0; index < 10; index += 1) feed.publish(created(`c${index}`));
  const seen: RuntimeEvent[] = [];
  for (let index = 0; index < 2; index += 1) seen.push((await stream.next()).value);
  t.is(seen[0]?.type, 'resync');
  feed.close();
  t.true((await stream.next()).done);
});

test('a subscription begins with the call, and streams end in exactly one way', async (t) => {
  const feed = new EventFeed(() => 0);
  const early = feed.stream();
  feed.publish(created('a'));
  const iterator = early[Symbol.asyncIterator]();
  t.is((await iterator.next()).value.type, 'resync');
  t.is((await iterator.next()).value.type, 'containerCreated');
  const waiting = iterator.next();
  feed.fail('gone');
  await t.throwsAsync(waiting, { code: 'Unavailable' } as object);
  t.true((await iterator.next()).done);
  const controller = new AbortController();
  const aborted = feed.stream(controller.signal)[Symbol.asyncIterator]();
  await aborted.next();
  const pending = aborted.next();
  controller.abort();
  t.true((await pending).done);
});
