import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { cleanEnvironment, removeDirectory } from '../../src/keelson-process.ts';

for (const [name, least] of [
  ['embed', 5],
  ['add-routes', 3],
  ['write-a-controller', 3],
  ['run-benchmarks', 1],
] as const)
  test(`every program on the page ${name} runs as it is and prints what the page says`, async (t) => {
    t.timeout(120_000);
    const page = fileURLToPath(new URL(`../../../../docs/how-to/${name}.md`, import.meta.url));
    const text = await readFile(page, 'utf8');
    const programs = [...text.matchAll(/```js\n(.*?)```\n(?:\n```text\n(.*?)```)?/gs)];
    t.true(programs.length >= least);
    for (const [i, [, source = '', output]] of programs.entries()) {
      t.not(output, undefined, `program ${i} says what it prints`);
      // Beside this file, so that packages are found.
      const file = fileURLToPath(new URL(`${name}-${process.pid}-${i}.mjs`, import.meta.url));
      t.teardown(() => removeDirectory(file));
      await writeFile(file, source);
      const { stdout } = await promisify(execFile)(process.execPath, [file], {
        env: cleanEnvironment(),
        timeout: 60_000,
      });
      t.is(stdout, output ?? '');
    }
  });
