import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseOptions, processTable, resolveConfig } from '@keelson/agent';
import { temporaryDirectory } from '@keelson/test-support';
import test from 'ava';
import { runtimeCgroupWarning, runtimeProcess } from '../../src/runtime/runtime-process.ts';

const facts = { hostname: () => 'node-1', fileExists: () => false };

test('the process of the runtime is the one that listens at its endpoint', async (t) => {
  const root = await temporaryDirectory(t);
  for (const pid of [1, 7, 8]) {
    mkdirSync(join(root, String(pid), 'fd'), { recursive: true });
    symlinkSync('/bin/true', join(root, String(pid), 'exe'));
  }
  const table = processTable(root);
  mkdirSync(join(root, 'net'));
  writeFileSync(
    join(root, 'net/unix'),
    `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000003 00000000 00000000 0001 03 100 /run/engine.sock
0000000000000000: 00000002 00000000 00010000 0001 01 200 /run/engine.sock
`,
  );
  symlinkSync('socket:[100]', join(root, '7/fd/3'));
  symlinkSync('socket:[200]', join(root, '8/fd/4'));
  symlinkSync('socket:[200]', join(root, '1/fd/9'));
  const at = (endpoint: string) => ({ endpoint, supervised: false });
  const own = { endpoint: undefined, supervised: false };
  const supervised = { endpoint: undefined, supervised: true };
  t.is(await runtimeProcess(at('unix:///run/engine.sock'), root, table), 8);
  t.is(await runtimeProcess(at('unix:///run/other.sock'), root, table), undefined);
  t.is(await runtimeProcess(own, root, table), undefined, 'the runtime is part of the agent');
  t.is(await runtimeProcess(supervised, root, table), undefined, 'no supervisor runs');
  const config = (option: string) => resolveConfig(parseOptions([option]), facts).config;
  const withGroup = config('--runtime-cgroups=/r');
  t.regex(
    runtimeCgroupWarning(withGroup, own, 'process') ?? '',
    /^--runtime-cgroups has no effect with the runtime process, .*--agent-cgroups/,
  );
  t.is(runtimeCgroupWarning(config('--agent-cgroups=/a'), own, 'process'), undefined);
  t.is(runtimeCgroupWarning(withGroup, at('unix:///run/engine.sock'), 'engine'), undefined);
  t.is(runtimeCgroupWarning(withGroup, supervised, 'oci'), undefined);
});
