import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RuntimeError } from '@keelson/container-runtime';
import test from 'ava';
import { bench, containerRecord, deadStat, ownStat, TestContainer } from './support/monitored.ts';

const id = 'c'.repeat(24);

test('the files of a removed container are not read, and a missing keeper does not prevent a removal', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  b.context.keeper.request = () => Promise.reject(new RuntimeError('Unavailable', 'no keeper'));
  b.write(id, 'monitor', deadStat);
  b.write(id, 'exit', '0\n');
  await container.remove();
  t.is(container.state, 'exited');
  const created = new TestContainer(b.context, containerRecord('d'.repeat(24)));
  await created.remove();
  await t.throwsAsync(created.start(), { code: 'InvalidState' });
  b.write(created.id, 'pid', ownStat());
  await created.refresh();
  t.is(created.state, 'created');
  t.deepEqual(readdirSync(b.state.containers), []);
});

test('remove ends a monitor that is alive', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  const monitor = spawn('sleep', ['1000']);
  t.teardown(() => monitor.kill('SIGKILL'));
  const ended = new Promise((resolve) => monitor.once('exit', (_code, signal) => resolve(signal)));
  b.write(id, 'monitor', readFileSync(`/proc/${monitor.pid}/stat`, 'latin1'));
  b.write(id, 'logged', '');
  b.write(id, 'exit', '0\n');
  await container.remove();
  t.is(await ended, 'SIGKILL');
});

test('remove drops the log stream, discards resources and deletes all files', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  b.write(id, 'monitor', deadStat);
  b.write(id, 'logged', '');
  b.write(id, 'exit', '0\n');
  await Promise.all([container.remove(), container.remove()]);
  await container.remove();
  t.deepEqual(b.requests, [`drop ${id}`]);
  t.is(container.calls.filter((call) => call === 'discard').length, 1);
  for (const kind of ['monitor', 'logged', 'exit']) t.false(existsSync(join(b.state.run, `${id}.${kind}`)), kind);
  t.false(existsSync(b.state.container(id)));
  t.is(b.events.at(-1)?.type, 'containerRemoved');
  t.is(b.events.filter(({ type }) => type === 'containerRemoved').length, 1);
  t.false(container.isActive);
  await t.throwsAsync(container.start(), { code: 'InvalidState' });
});

test('a removal that fails can be repeated, and is complete after the first success', async (t) => {
  const b = await bench(t);
  const container = new TestContainer(b.context, containerRecord(id));
  b.write(id, 'exit', '0\n');
  container.onDiscard = () => {
    throw new Error('busy');
  };
  const failed = await Promise.allSettled([container.remove(), container.remove()]);
  t.deepEqual(
    failed.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  t.true(existsSync(b.state.container(id)));
  t.false(b.events.some(({ type }) => type === 'containerRemoved'));
  container.onDiscard = () => {};
  await container.remove();
  await container.remove();
  t.is(container.calls.filter((call) => call === 'discard').length, 2, 'concurrent removals share one run');
  t.deepEqual(readdirSync(b.state.containers), []);
  t.deepEqual(readdirSync(b.state.run), []);
  t.is(b.events.filter(({ type }) => type === 'containerRemoved').length, 1);
});
