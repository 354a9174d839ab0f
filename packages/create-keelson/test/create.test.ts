import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parseYaml, UsageError } from '@keelson/core/internal';
import test from 'ava';
import { readCommand } from '../src/choices.ts';
import { projectFiles } from '../src/project-files.ts';

const command = fileURLToPath(new URL('../src/bin/create-keelson.js', import.meta.url));
const home = await mkdtemp(join(tmpdir(), 'create-keelson-'));
test.after.always(() => rm(home, { recursive: true, force: true }));

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const run = (...args: string[]): Promise<Ended> =>
  promisify(execFile)(process.execPath, ['--conditions=keelson-modules', command, ...args], { cwd: home }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: Ended) => error,
  );

const versions = { keelson: '1.2.3', typescript: '7.0.2', nodeTypes: '20.19.0' };

async function filesOf(...words: string[]): Promise<ReadonlyMap<string, string>> {
  const read = await readCommand(words, undefined);
  return projectFiles(read!.choices, versions);
}

for (const [words, message] of [
  [[], /^the name of the project is missing; use npm create keelson NAME$/],
  [['My App'], /^the name of the project: "My App" is invalid: /],
  [['app', '--storage', 'lmbd'], /^--storage: unsupported value "lmbd"; did you mean lmdb\?$/],
  [['app', '--kinds', 'widget'], /^--kinds: "widget" is not the name of a kind, such as BackupPlan$/],
  [['app', '--kinds', 'Widget,Widget'], /^--kinds contains two kinds with the resource widgets$/],
  [['app', '--group', 'example'], /^--group example is not a domain; use one of yours, such as example\.com$/],
  [['app', '--dokcer'], /^unknown option --dokcer; did you mean --docker\?$/],
] as const)
  test(`invalid arguments are rejected: ${words.join(' ') || 'none'}`, async (t) => {
    await t.throwsAsync(readCommand([...words], undefined), { instanceOf: UsageError, message });
  });

test('an invalid argument causes one sentence and exit code 2, and a folder that is not empty is not changed', async (t) => {
  await mkdir(join(home, 'used'));
  await writeFile(join(home, 'used', 'notes.txt'), 'mine');
  const { code, stdout, stderr } = await run('used', '--yes');
  t.deepEqual([code, stdout], [2, '']);
  t.is(stderr, `create-keelson: ${join(home, 'used')} is not empty; choose another name\n`);
  t.deepEqual(await readdir(join(home, 'used')), ['notes.txt']);
});

test('the command writes the files and prints the next steps', async (t) => {
  const { code, stdout } = await run('plane', '--install=false');
  t.is(code, 0);
  t.regex(stdout, /^Created plane with 10 files\.\n\nNext:\n {2}cd plane\n {2}npm install\n/);
  const { dependencies } = JSON.parse(await readFile(join(home, 'plane', 'package.json'), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  t.regex(dependencies['keelson'] ?? '', /^\^\d+\.\d+\.\d+$/);
  t.regex((await run('--help')).stdout, /--storage STORE \(default lmdb\)/);
});

test('the command prompts for choices that the command line does not determine', async (t) => {
  const asked: string[] = [];
  const answers: Readonly<Record<string, string>> = { Name: 'shop', Kinds: 'Order,Item', Store: 'etcd', A: 'no' };
  const read = await readCommand([], async (question, byDefault) => {
    asked.push(`${question} (${byDefault})`);
    return answers[question.split(' ')[0] ?? ''] ?? byDefault;
  });
  t.is(asked.length, 6);
  t.true(asked.includes('A controller for each kind (yes)'));
  t.like(read?.choices, { name: 'shop', storage: 'etcd', controller: false, docker: false, group: 'example.com' });
  t.deepEqual(
    read?.choices.kinds.map(({ plural }) => plural),
    ['orders', 'items'],
  );
  const quiet = await readCommand(['shop', '--yes'], () => Promise.reject(new Error('asked')));
  t.like(quiet?.choices, { name: 'shop', storage: 'lmdb', controller: true });
});

test('the written files match the choices', async (t) => {
  const small = await filesOf('a', '--controller=false', '--storage=memory');
  t.false([...small.values()].some((text) => text.includes('controller-kit')));
  t.regex(small.get('keelson.yaml') ?? '', /^kinds: \[\.\/dist\/src\/widget\.js\]\nstorage: "memory:"$/m);
  const large = await filesOf('a', '--kinds', 'BackupPlan,Policy', '--storage', 'postgres', '--docker');
  t.deepEqual([...large.keys()].filter((path) => path.startsWith('src/')).sort(), [
    'src/backup-plan-controller.ts',
    'src/backup-plan.ts',
    'src/policy-controller.ts',
    'src/policy.ts',
  ]);
  t.regex(large.get('package.json') ?? '', /"@keelson\/storage-postgres": "\^1\.2\.3"/);
  t.regex(large.get('README.md') ?? '', /get backupplans --watch/);
  t.regex(large.get('compose.yaml') ?? '', /KEELSON_STORAGE: "postgres:\/\/keelson:keelson@database:5432\/keelson"/);
});

for (const storage of ['lmdb', 'memory', 'postgres', 'etcd'])
  test(`the Dockerfile for ${storage} copies existing files, and services of the compose file refer to each other`, async (t) => {
    const files = await filesOf('plane', '--docker', '--storage', storage);
    const { outDir } = JSON.parse(files.get('tsconfig.json') ?? '').compilerOptions as { readonly outDir: string };
    const created = [...files.keys(), 'package-lock.json'];
    const built = [...created, 'node_modules', `${outDir}/src`];
    const copies = [...(files.get('Dockerfile') ?? '').matchAll(/^COPY (--from=build )?(.+) \S+$/gm)];
    t.true(copies.length >= 6);
    for (const [line, stage, sources = ''] of copies)
      for (const source of sources.split(' ').map((name) => name.replace(/^\/app\//, '')))
        t.true(
          (stage ? built : created).some((file) => file === source || file.startsWith(`${source}/`)),
          line,
        );
    const { services, volumes } = parseYaml(Buffer.from(files.get('compose.yaml') ?? '')).value as {
      readonly services: Readonly<
        Record<string, { readonly depends_on?: object; readonly volumes: readonly string[] }>
      >;
      readonly volumes: object;
    };
    for (const service of Object.values(services)) {
      for (const other of Object.keys(service.depends_on ?? {})) t.true(other in services, other);
      for (const volume of service.volumes) t.true((volume.split(':')[0] ?? '') in volumes, volume);
    }
  });
