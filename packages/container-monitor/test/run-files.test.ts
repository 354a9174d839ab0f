import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { RunFiles } from '../src/index.ts';

function runFiles(t: ExecutionContext): { files: RunFiles; folder: string } {
  const folder = mkdtempSync('/tmp/keelson-run-files-');
  t.teardown(() => rmSync(folder, { recursive: true }));
  return { files: new RunFiles(folder), folder };
}

test('an exit that a monitor wrote is its code, at the time of the file', async (t) => {
  const { files, folder } = runFiles(t);
  t.is(await files.exit('a'), undefined);
  writeFileSync(join(folder, 'a.exit'), '143\n');
  utimesSync(join(folder, 'a.exit'), 1000, 1000);
  t.deepEqual(await files.exit('a'), { exitCode: 143, finishedAt: 1_000_000 });
});

test('an exit of which more is known keeps what is known, its time included', async (t) => {
  const { files } = runFiles(t);
  const exit = { exitCode: 137, finishedAt: 5, reason: 'OOMKilled', message: 'line one\nline two' };
  await files.writeExit('a', exit);
  t.deepEqual(await files.exit('a'), exit);
  await files.writeExit('a', { exitCode: 128, reason: 'StartError' });
  const { finishedAt = 0, ...rest } = (await files.exit('a')) ?? {};
  t.deepEqual(rest, { exitCode: 128, reason: 'StartError' });
  t.true(Math.abs(finishedAt - Date.now()) < 60_000);
});

test('a damaged exit is the end of a container all the same', async (t) => {
  const { files, folder } = runFiles(t);
  writeFileSync(join(folder, 'a.exit'), 'nonsense');
  const { exitCode, reason } = (await files.exit('a')) ?? {};
  t.deepEqual([exitCode, reason], [137, 'ContainerStatusUnknown']);
});

test('a process is named by the line of its status, once that is whole', async (t) => {
  const { files, folder } = runFiles(t);
  const line = `77 (a b) c) S 1 77 77 ${'0 '.repeat(15)}4242 0`;
  writeFileSync(join(folder, 'a.pid'), line);
  t.is(await files.process('a', 'pid'), undefined);
  writeFileSync(join(folder, 'a.pid'), `${line}\n`);
  t.is((await files.process('a', 'pid'))?.identity.pid, 77);
  t.is((await files.process('a', 'pid'))?.identity.startTicks, 4242);
});
