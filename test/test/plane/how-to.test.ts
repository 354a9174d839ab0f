import { execFile, execFileSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { cleanEnvironment, removeDirectory } from '../../src/keelson-process.ts';

const endOfProgram = '--- end of program ---';

for (const [name, least] of [
  ['embed', 5],
  ['add-routes', 3],
  ['define-kinds', 4],
  ['write-a-controller', 3],
  ['run-benchmarks', 1],
  ['trace-requests', 1],
] as const)
  test(`every program on the page ${name} runs unchanged and prints the documented output`, async (t) => {
    t.timeout(120_000);
    const page = fileURLToPath(new URL(`../../../../docs/how-to/${name}.md`, import.meta.url));
    const text = await readFile(page, 'utf8');
    const programs = [...text.matchAll(/```js\n(.*?)```\n(?:\n```text\n(.*?)```)?/gs)];
    t.true(programs.length >= least);
    // Beside this file, so that packages are found.
    const fileOf = (i: number | 'all') => fileURLToPath(new URL(`${name}-${process.pid}-${i}.mjs`, import.meta.url));
    for (const [i, [, source = '', output]] of programs.entries()) {
      t.not(output, undefined, `program ${i} has a documented output`);
      t.teardown(() => removeDirectory(fileOf(i)));
      await writeFile(fileOf(i), source);
    }
    // One process runs one program after the other, because loading the packages costs more than the programs.
    t.teardown(() => removeDirectory(fileOf('all')));
    const lines = programs.map(
      (_, i) => `await import('./${basename(fileOf(i))}');\nconsole.log('${endOfProgram}');\n`,
    );
    await writeFile(fileOf('all'), lines.join(''));
    const { stdout } = await promisify(execFile)(process.execPath, [fileOf('all')], {
      env: cleanEnvironment(),
      timeout: 100_000,
    });
    t.deepEqual(stdout.split(`${endOfProgram}\n`), [...programs.map(([, , output]) => output ?? ''), '']);
  });

const root = fileURLToPath(new URL('../../../../', import.meta.url));

/** Codes of errors about undeclared names of an excerpt; other errors may follow from them. */
const unresolved = /error TS(?:2304|2503|2552|2593|18004|7006|4112): |error TS2307: .*'\.{1,2}\//;
/** Errors of imports, which an excerpt must not have either. */
const ofImports = /error TS(?:2305|2307|2724|2614): (?!.*'\.{1,2}\/)/;

test('the TypeScript of all pages compiles, where it is complete', async (t) => {
  t.timeout(180_000);
  const pages = execFileSync('git', ['ls-files', '*.md'], { cwd: root, encoding: 'utf8' }).trim().split('\n');
  const folder = join(root, 'test/dist', `blocks-${process.pid}`);
  await mkdir(folder);
  t.teardown(() => removeDirectory(folder));
  const files: string[] = [];
  for (const page of pages.filter((name) => !name.startsWith('docs/adr/'))) {
    const text = await readFile(join(root, page), 'utf8');
    for (const [i, [, source = '']] of [...text.matchAll(/```ts\n(.*?)```/gs)].entries()) {
      const file = `${page.replaceAll(/[/.]/g, '-')}-${i}.ts`;
      await writeFile(join(folder, file), `${source}export {};\n`);
      files.push(file);
    }
  }
  t.true(files.length > 40);
  const compilerOptions = {
    ...{ composite: false, declarationMap: false, noEmit: true, rootDir: '.', allowImportingTsExtensions: true },
  };
  await writeFile(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ extends: '../../../tsconfig.base.json', compilerOptions, files }),
  );
  const compiler = [join(root, 'node_modules/typescript/bin/tsc'), '--pretty', 'false', '-p', '.'];
  const output = await promisify(execFile)(process.execPath, compiler, { cwd: folder }).then(
    ({ stdout }) => stdout,
    (error: { readonly stdout: string }) => error.stdout,
  );
  const errors = output.split('\n').filter((line) => /error TS\d+/.test(line));
  const blockOf = (line: string) => line.split('(')[0] ?? '';
  const excerpts = new Set(errors.filter((line) => unresolved.test(line)).map(blockOf));
  const wrong = errors.filter((line) => ofImports.test(line) || !excerpts.has(blockOf(line)));
  t.deepEqual(wrong, []);
  t.true(files.length - excerpts.size > 15);
});
