import test from 'ava';
import { FakeClock, type LogFields, type Logger, type Service, ServiceHost, silentLogger } from '../../src/runtime.ts';

interface Line {
  readonly message: string;
  readonly fields: LogFields | undefined;
}

function recording(): { readonly lines: Line[]; readonly logger: Logger } {
  const lines: Line[] = [];
  const warn = (message: string, fields?: LogFields) => {
    lines.push({ message, fields });
  };
  return { lines, logger: { ...silentLogger, warn } };
}

/** A service that notes what is done to it; its start ends when `started` does. */
function service(name: string, steps: string[], started: Promise<void> = Promise.resolve(), reason?: string): Service {
  return {
    name,
    start: async () => {
      steps.push(`start ${name}`);
      await started;
    },
    stop: async () => {
      steps.push(`stop ${name}`);
    },
    waitingFor: () => reason,
  };
}

const forever = new Promise<void>(() => {});

test('a start that waits longer than three seconds is logged with its reason, again every fifteen, and no more when it is over', async (t) => {
  const clock = new FakeClock();
  const { lines, logger } = recording();
  let finish = () => {};
  const slow = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const host = new ServiceHost([service('slow', [], slow, 'the database does not answer')], clock, logger);
  const starting = host.start();
  clock.advance(2_999);
  t.deepEqual(lines, []);
  clock.advance(1);
  const line = (seconds: number) => ({
    message: 'the start is delayed',
    fields: { component: 'slow', seconds, reason: 'the database does not answer' },
  });
  t.deepEqual(lines, [line(3)]);
  clock.advance(15_000);
  t.deepEqual(lines, [line(3), line(18)]);
  finish();
  await starting;
  clock.advance(60_000);
  t.is(lines.length, 2);
  await host.stop();
});

test('an abort signal ends a start that hangs: started and starting services are stopped, and no other is started', async (t) => {
  const steps: string[] = [];
  const ending = new AbortController();
  const services = [service('a', steps), service('hangs', steps, forever), service('c', steps)];
  const starting = new ServiceHost(services, new FakeClock(), silentLogger).start(ending.signal);
  await new Promise((resolve) => setImmediate(resolve));
  ending.abort(new Error('ended'));
  await t.throwsAsync(starting, { message: 'ended' });
  t.deepEqual(steps, ['start a', 'start hangs', 'stop hangs', 'stop a']);
});

test('with a signal that is already aborted no service is started', async (t) => {
  const steps: string[] = [];
  const host = new ServiceHost([service('a', steps)], new FakeClock(), silentLogger);
  await t.throwsAsync(host.start(AbortSignal.abort(new Error('ended'))), { message: 'ended' });
  t.false(steps.includes('start a'));
});
