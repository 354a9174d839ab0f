import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseOptions, processTable, type RuntimeChoice, resolveConfig } from '@keelson/agent';
import test from 'ava';
import { runtimeProcess, withoutRuntimeProcess } from '../../src/runtime/runtime-process.ts';
import { temporaryDirectory } from '../support.ts';

const facts = { hostname: () => 'node-1', fileExists: () => false };

test("the runtime's process is the one that listens at its endpoint", async (t) => {
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
  const find = (runtime: RuntimeChoice, name: string) => runtimeProcess({ rootDir: root, runtime }, name, table);
  t.is(await find({ kind: 'engine', endpoint: 'unix:///run/engine.sock' }, 'engine'), 8);
  t.is(await find({ kind: 'engine', endpoint: 'unix:///run/other.sock' }, 'engine'), undefined);
  const found = { kind: 'default', engineEndpoint: 'unix:///run/engine.sock', shimEndpoint: '' } as const;
  t.is(await find(found, 'engine'), 8);
  t.is(await find(found, 'process'), undefined, 'it is a part of the agent');
  const meaningless = (choice: RuntimeChoice, name: string, word = '--runtime-cgroups=/r') =>
    withoutRuntimeProcess(resolveConfig(parseOptions([word]), facts).config, choice, name);
  t.regex(
    meaningless(found, 'process') ?? '',
    /--runtime-cgroups means nothing with the runtime process, .*--agent-cgroups/,
  );
  t.is(meaningless(found, 'process', '--agent-cgroups=/a'), undefined);
  t.is(meaningless(found, 'engine'), undefined);
  t.is(meaningless({ kind: 'oci', path: undefined, supervisorEndpoint: 'localhost:1' }, 'oci'), undefined);
});
