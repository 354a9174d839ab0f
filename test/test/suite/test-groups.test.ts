import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { cleanEnvironment, removeDirectory, temporaryDirectory } from '../../src/keelson-process.ts';

// Test files that share a process (ADR 50) run as in processes of their own.

const root = fileURLToPath(new URL('../../../../', import.meta.url));

/** Runs test files as one group of a workspace; returns their results and the lines that they recorded. */
async function runGroup(t: ExecutionContext, files: Readonly<Record<string, string>>) {
  const project = await temporaryDirectory();
  t.teardown(() => removeDirectory(project));
  const workspace = join(project, 'packages/client');
  await mkdir(join(workspace, 'dist/test/group'), { recursive: true });
  await symlink(join(root, 'node_modules'), join(project, 'node_modules'));
  await writeFile(join(project, 'package.json'), '{ "type": "module" }');
  await writeFile(
    join(project, 'ava.config.js'),
    `import { writeGroups } from ${JSON.stringify(join(root, 'scripts/test-groups.mjs'))};
    const members = writeGroups(import.meta.dirname, 'dist/groups', (workspace) => workspace === 'packages/client', []);
    export default {
      files: ['**/*.test.js', ...members.map((file) => '!' + file)],
      require: [${JSON.stringify(join(root, 'scripts/test-file.mjs'))}],
      workerThreads: false,
    };`,
  );
  const records = join(project, 'records');
  for (const [name, body] of Object.entries(files))
    await writeFile(
      join(workspace, `dist/test/group/${name}.test.js`),
      `import { appendFileSync } from 'node:fs';
      import test from 'ava';
      const record = (text) => appendFileSync(${JSON.stringify(records)}, '${name} ' + text + '\\n');
      ${body}`,
    );
  const cli = join(root, 'node_modules/ava/entrypoints/cli.mjs');
  const options = { cwd: project, env: cleanEnvironment() };
  const { passed, output } = await new Promise<{ passed: boolean; output: string }>((resolve) => {
    execFile(process.execPath, [cli, '--tap'], options, (error, stdout) =>
      resolve({ passed: error === null, output: stdout }),
    );
  });
  return {
    passed,
    results: [...output.matchAll(/^(ok|not ok) \d+ - (.*)$/gm)]
      .map(([, result, title]) => `${result}: ${title}`)
      .sort(),
    records: (await readFile(records, 'utf8')).trimEnd().split('\n'),
  };
}

test('the hooks of a file in a group apply to its tests alone, and one file runs after the other', async (t) => {
  const { passed, results, records } = await runGroup(t, {
    one: `
      test.before((t) => { t.context = { opened: 'by one' }; record('before'); });
      test.beforeEach(() => record('beforeEach'));
      test.afterEach.always(() => record('afterEach'));
      test.after.always(() => record('after'));
      test('concurrent', (t) => { record('concurrent'); t.is(t.context.opened, 'by one'); });
      test.serial('serial', async (t) => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        record('serial');
        t.pass();
      });`,
    two: `
      test.before(() => record('before'));
      test.after.always(() => record('after'));
      test('without context', (t) => { record('test'); t.deepEqual(t.context, {}); });`,
  });
  t.true(passed);
  t.deepEqual(results, [
    'ok: packages/client/group/one › concurrent',
    'ok: packages/client/group/one › serial',
    'ok: packages/client/group/two › without context',
  ]);
  t.deepEqual(records, [
    'one before',
    'one beforeEach',
    'one serial',
    'one afterEach',
    'one beforeEach',
    'one concurrent',
    'one afterEach',
    'one after',
    'two before',
    'two test',
    'two after',
  ]);
});

test('a failed hook of a file in a group fails the run, and the tests of other files run', async (t) => {
  const { passed, results, records } = await runGroup(t, {
    one: `
      test.before(() => { throw new Error('no server'); });
      test.after.always(() => record('cleaned'));
      test('of one', () => record('test'));`,
    two: `
      test.after(async () => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        throw new Error('not closed');
      });
      test('of two', (t) => { record('test'); t.pass(); });`,
  });
  t.false(passed);
  t.deepEqual(results, [
    'not ok: packages/client/group/one › hook',
    'not ok: packages/client/group/two › hook',
    'ok: packages/client/group/two › of two',
  ]);
  t.deepEqual(records, ['one cleaned', 'two test']);
});

test('a file in a group may wait before it declares tests', async (t) => {
  const { passed, results, records } = await runGroup(t, {
    one: `
      record('waits');
      await new Promise((resolve) => setTimeout(resolve, 20));
      test.after.always(() => record('closed'));
      test('of one', (t) => { record('test'); t.pass(); });`,
    two: `
      record('imported');
      test('of two', (t) => { record('test'); t.pass(); });`,
  });
  t.true(passed);
  t.deepEqual(results, ['ok: packages/client/group/one › of one', 'ok: packages/client/group/two › of two']);
  t.deepEqual(records, ['one waits', 'two imported', 'one test', 'one closed', 'two test']);
});
