import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { LmdbStore } from '../src/index.ts';
import { temporaryDirectory } from './support/lmdb-harness.ts';

function directory(t: ExecutionContext): string {
  const { path, remove } = temporaryDirectory();
  t.teardown(remove);
  return path;
}

async function opened(t: ExecutionContext, path: string): Promise<LmdbStore> {
  const store = new LmdbStore({ path });
  await store.ready();
  t.teardown(() => store.close());
  return store;
}

const lockOf = (path: string) => join(path, 'keelson.lock');

test('a directory is opened once in a process, whatever it is called', async (t) => {
  const path = directory(t);
  const link = join(directory(t), 'link');
  symlinkSync(path, link);
  const store = await opened(t, path);
  for (const again of [path, `${path}/.`, link]) {
    await t.throwsAsync(new LmdbStore({ path: again }).ready(), { code: 'Unavailable', message: /in use by this process/ });
  }
  await store.write({ op: 'put', key: '/a', value: Buffer.from('x'), expect: 0 });
  await store.close();
  t.false(existsSync(lockOf(path)), 'the lock goes with the store');
  const next = await opened(t, link);
  t.is(await next.currentRevision(), 2);
});

test('a directory that another process has open is refused by the id of that process, and taken over after its death', async (t) => {
  const path = directory(t);
  const script = fileURLToPath(new URL('./support/crash-writer.js', import.meta.url));
  const child = spawn(process.execPath, [script, path, '0', '1', '1000'], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  child.stdout.resume();
  await t.throwsAsync(new LmdbStore({ path }).ready(), {
    code: 'Unavailable',
    message: new RegExp(`in use by process ${child.pid};`),
  });
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
  t.true(existsSync(lockOf(path)));
  const store = await opened(t, path);
  t.true((await store.currentRevision()) >= 1);
  t.is((JSON.parse(readFileSync(lockOf(path), 'utf8')) as { pid: number }).pid, process.pid);
});

for (const [what, content] of [
  ['of a process that is gone', JSON.stringify({ pid: 2 ** 22 + 7 })],
  ['of an earlier process with our id', JSON.stringify({ pid: process.pid, started: 'another-boot/1' })],
  ['of an earlier process with the id of a living one', JSON.stringify({ pid: process.ppid, started: 'another-boot/1' })],
  ['that is empty', ''],
  ['that is no lock', '[1, 2'],
] as const) {
  test(`a lock ${what} is taken over`, async (t) => {
    const path = directory(t);
    writeFileSync(lockOf(path), content);
    if (what.includes('living') && !existsSync('/proc/self/stat')) {
      t.pass('this system does not tell start times');
      return;
    }
    const store = await opened(t, path);
    await store.close();
    t.deepEqual(
      readdirSync(path).filter((name) => name.startsWith('keelson.lock')),
      [],
      'nothing is left behind',
    );
  });
}

test('a path that cannot be a directory is Unavailable', async (t) => {
  const path = join(directory(t), 'file');
  writeFileSync(path, 'not a directory');
  await t.throwsAsync(new LmdbStore({ path }).ready(), { code: 'Unavailable' });
  await t.throwsAsync(new LmdbStore({ path: join(path, 'below') }).ready(), { code: 'Unavailable' });
});

for (const [what, content] of [
  ['garbage', Buffer.alloc(64 * 1024, 'garbage')],
  ['a few bytes', Buffer.from('x')],
  ['of another format', Buffer.concat([Buffer.alloc(24), Buffer.from('dec0efbe07000000', 'hex'), Buffer.alloc(8160)])],
] as const) {
  test(`a data file that is ${what} is Corrupt, and the directory is free again`, async (t) => {
    const path = directory(t);
    writeFileSync(join(path, 'data.mdb'), content);
    await t.throwsAsync(new LmdbStore({ path }).ready(), { code: 'Corrupt', message: /data\.mdb/ });
    t.false(existsSync(lockOf(path)));
    t.deepEqual(readFileSync(join(path, 'data.mdb')), content, 'and untouched');
  });
}

test('an empty data file, as a crash at the very beginning leaves it, is a new store', async (t) => {
  const path = directory(t);
  writeFileSync(join(path, 'data.mdb'), '');
  const store = await opened(t, path);
  t.is(await store.currentRevision(), 1);
});
