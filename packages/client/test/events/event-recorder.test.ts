import { type ApiClient, type KubeObject, statusErrors } from '@keelson/core';
import { FakeClock } from '@keelson/core/runtime';
import { listeningLogger, until } from '@keelson/test-support';
import test from 'ava';
import { ApiEventRecorder, EventCorrelator, type EventSubject } from '../../src/events/event-recorder.ts';
import { ConnectionError } from '../../src/index.ts';

const podSubject = (name: string, fieldPath?: string): EventSubject => ({
  ...{ apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name, uid: `uid-${name}` },
  ...(fieldPath === undefined ? {} : { fieldPath }),
});

interface SentEvent extends KubeObject {
  readonly involvedObject?: { readonly fieldPath?: string };
  readonly message?: string;
}

/** An API that records writes, and fails as configured. */
function fakeApi() {
  const calls: { verb: string; namespace: string; name: string; body: SentEvent }[] = [];
  const failures: unknown[] = [];
  const answer = async (verb: string, namespace: string, name: string, body: SentEvent) => {
    const failure = failures.shift();
    if (failure !== undefined) throw failure;
    calls.push({ verb, namespace, name, body });
    return body;
  };
  const client = {
    dynamic: () => ({
      namespace: (namespace: string) => ({
        create: (event: SentEvent) => answer('create', namespace, event.metadata?.name ?? '', event),
        patch: (name: string, _: string, patch: SentEvent) => answer('patch', namespace, name, patch),
      }),
    }),
  } as unknown as ApiClient;
  return { client, calls, failures };
}

function open({ qps = 0, burst = 10 } = {}) {
  const clock = new FakeClock();
  const logger = listeningLogger();
  const api = fakeApi();
  const recorder = new ApiEventRecorder({
    client: api.client,
    source: { component: 'tester', host: 'n1' },
    qps,
    burst,
    clock,
    logger,
  });
  return { clock, logger, recorder, ...api };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('an event contains its reason, message, object, source and times', async (t) => {
  const { recorder, calls } = open();
  recorder.record(podSubject('web', 'spec.containers{main}'), 'Warning', 'BackOff', 'again');
  recorder.record(podSubject('web'), 'Normal', 'Started', 'on');
  recorder.record({ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'n1' }, 'Normal', 'Starting', 'up');
  await until(() => calls.length === 3);
  t.like(calls[0], {
    verb: 'create',
    namespace: 'shop',
    body: {
      involvedObject: { kind: 'Pod', name: 'web', uid: 'uid-web', fieldPath: 'spec.containers{main}' },
      source: { component: 'tester', host: 'n1' },
      reportingComponent: 'tester',
      reportingInstance: 'n1',
      type: 'Warning',
      reason: 'BackOff',
      message: 'again',
      count: 1,
      firstTimestamp: '2026-01-01T00:00:00Z',
    },
  });
  t.regex(calls[0]?.name ?? '', /^web\.[0-9a-f]+$/);
  t.is(calls[1]?.body.involvedObject?.fieldPath, undefined);
  t.is(calls[2]?.namespace, 'default');
  t.is(new Set(calls.map(({ name }) => name)).size, 3);
});

test('a repeated event increments the count of the existing event, which is created again when it has expired', async (t) => {
  const { recorder, calls, clock, failures } = open();
  const record = () => recorder.record(podSubject('web'), 'Warning', 'BackOff', 'again');
  record();
  clock.advance(5000);
  record();
  await until(() => calls.length === 2);
  t.like(calls[1], { verb: 'patch', name: calls[0]?.name, body: { count: 2, lastTimestamp: '2026-01-01T00:00:05Z' } });
  failures.push(statusErrors.notFound({ group: '', resource: 'events' }, 'x'));
  record();
  await until(() => calls.length === 3);
  t.like(calls[2], { verb: 'create', name: calls[0]?.name, body: { count: 3 } });
});

test('more than ten different messages of one reason within ten minutes become one combined event', (t) => {
  const clock = new FakeClock();
  const correlator = new EventCorrelator(clock);
  const record = (message: string) =>
    correlator.take({ subject: podSubject('web'), type: 'Warning', reason: 'Failed', message });
  const first = Array.from({ length: 10 }, (_, index) => record(`m${index}`));
  t.true(first.every((event) => event?.count === 1 && !event.message.startsWith('(combined')));
  const eleventh = record('m10');
  t.is(eleventh?.message, '(combined from similar events): m10');
  const twelfth = record('m11');
  t.deepEqual([twelfth?.name, twelfth?.count], [eleventh?.name, 2]);
  t.is(record('m3')?.message, 'm3', 'a message with an event of its own is not combined');
  clock.advance(600_001);
  t.is(record('m12')?.message, 'm12');
});

test('an object may have 25 events at once, then one every five minutes; other objects are not affected', (t) => {
  const clock = new FakeClock();
  const correlator = new EventCorrelator(clock);
  const record = (name: string) =>
    correlator.take({ subject: podSubject(name), type: 'Normal', reason: 'Same', message: 'same' });
  t.is(Array.from({ length: 40 }, () => record('web')).filter((event) => event !== undefined).length, 25);
  t.is(record('other')?.count, 1);
  clock.advance(300_000);
  t.is(record('web')?.count, 26);
  t.is(record('web'), undefined);
});

test('--event-qps and --event-burst limit the rate and the burst of events, and no event is lost', async (t) => {
  const { recorder, calls, clock } = open({ qps: 5, burst: 10 });
  for (let index = 0; index < 20; index += 1) recorder.record(podSubject(`p${index}`), 'Normal', 'R', 'm');
  await until(() => calls.length === 10);
  await settled();
  t.is(calls.length, 10);
  clock.advance(200);
  await until(() => calls.length === 11);
  await settled();
  t.is(calls.length, 11);
  await until(() => {
    clock.advance(200);
    return calls.length === 20;
  });
});

test('--event-qps=0 disables the limit', async (t) => {
  const { recorder, calls } = open({ qps: 0, burst: 1 });
  for (let index = 0; index < 200; index += 1) recorder.record(podSubject(`p${index}`), 'Normal', 'R', 'm');
  await until(() => calls.length === 200);
  t.pass();
});

test('an event without a response is retried every ten seconds, twelve times; a rejected event is dropped at once', async (t) => {
  const { recorder, calls, clock, failures, logger } = open();
  failures.push(...Array.from({ length: 3 }, () => new ConnectionError('Unreachable', 'gone')));
  recorder.record(podSubject('a'), 'Normal', 'R', 'm');
  await until(() => {
    clock.advance(10_000);
    return calls.length === 1;
  });
  t.deepEqual(logger.lines, []);
  failures.push(statusErrors.badRequest('no'));
  recorder.record(podSubject('b'), 'Normal', 'R', 'm');
  recorder.record(podSubject('c'), 'Normal', 'R', 'm');
  await until(() => calls.length === 2);
  t.regex(calls[1]?.name ?? '', /^c\./);
  t.is(logger.lines.length, 1);
  failures.push(...Array.from({ length: 12 }, () => new ConnectionError('Unreachable', 'gone')));
  recorder.record(podSubject('d'), 'Normal', 'R', 'm');
  await until(() => {
    clock.advance(10_000);
    return logger.lines.length === 2;
  });
  t.is(calls.length, 2);
});

test('at most 1000 events are queued, further ones are dropped, and recording an event never blocks', async (t) => {
  const { recorder, calls, clock, failures, logger } = open();
  failures.push(new ConnectionError('Unreachable', 'gone'));
  for (let index = 0; index < 1500; index += 1) recorder.record(podSubject(`p${index}`), 'Normal', 'R', 'm');
  t.deepEqual(
    logger.lines.map(({ message }) => message),
    ['events are dropped because the queue is full'],
  );
  await until(() => {
    clock.advance(10_000);
    return calls.length >= 1001;
  });
  await settled();
  t.is(calls.length, 1001);
  await recorder.stop();
  recorder.record(podSubject('late'), 'Normal', 'R', 'm');
  await settled();
  t.is(calls.length, 1001);
});
