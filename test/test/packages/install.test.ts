import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { until } from '@keelson/test-support';
import test from 'ava';
import { startPostgresDatabase } from '../../src/faults/databases.ts';

// The packages as users get them: packed, installed into an empty project, and used there without this checkout.

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../../../', import.meta.url));
const home = await mkdtemp(join(tmpdir(), 'keelson-install-'));
const project = join(home, 'project');

/** Compilers of users in the nightly run: the oldest that is supported, and another major version. */
const installedCompilers: Readonly<Record<string, string>> =
  process.env['KEELSON_TEST_FULL'] === '1' ? { 'typescript-5': '5.8.3', 'typescript-6': '6.0.3' } : {};
/** The folder of each compiler; that of this checkout needs a tenth of the time of the others. */
const compilers = {
  ...Object.fromEntries(Object.keys(installedCompilers).map((name) => [name, join(project, 'node_modules', name)])),
  'typescript-7': join(root, 'node_modules/typescript'),
};

async function tarballs(): Promise<string[]> {
  const packed = join(home, 'packed');
  await run(process.execPath, ['scripts/pack.mjs', packed], { cwd: root });
  const files = async (folder: string) => (await readdir(folder)).map((name) => join(folder, name));
  return [...(await files(packed)), ...(await files(join(packed, 'scoped')))].filter((name) => name.endsWith('.tgz'));
}

async function install(folder: string, words: readonly string[]): Promise<void> {
  await mkdir(folder);
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'app', private: true, type: 'module' }));
  const quiet = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  await run('npm', ['install', ...quiet, ...words], { cwd: folder });
}

interface Manifest {
  readonly name: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly exports?: Readonly<Record<string, unknown>>;
}

const manifestOf = async (folder: string) =>
  JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest;

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

/** The folders of these packages of the project and of what they depend on; optional peers are not included. */
async function dependenciesOf(names: readonly string[]): Promise<Set<string>> {
  const found = new Set<string>();
  const add = async (name: string, from: string): Promise<void> => {
    const folder = join(from, 'node_modules', name);
    if (!(await exists(folder))) return add(name, join(from, '../..').replace(/\/node_modules$/, ''));
    if (found.has(folder)) return;
    found.add(folder);
    for (const next of Object.keys((await manifestOf(folder)).dependencies ?? {})) await add(next, folder);
  };
  for (const name of names) await add(name, project);
  return found;
}

/** A project with some of the packages of the first one. */
async function installSome(folder: string, names: readonly string[]): Promise<void> {
  for (const source of await dependenciesOf(names)) {
    const target = join(folder, relative(project, source));
    await mkdir(dirname(target), { recursive: true });
    await run('cp', ['-al', source, target]);
  }
}

/** npm reads the versions of packages from the registry; a machine without access to it cannot install any. */
const hasRegistry = () =>
  run('npm', ['view', 'typescript', 'version'], { timeout: 60_000 }).then(
    () => true,
    () => false,
  );
// In CI a missing registry is a failure, not a skip.
const isRun = process.env['CI'] !== undefined || (await hasRegistry());
const withRegistry = isRun ? test : test.skip;
if (!isRun) test.skip('installation from tarballs [not run, the package registry cannot be reached]', () => {});

test.before(async (t) => {
  if (!isRun) return;
  t.timeout(480_000);
  const files = await tarballs();
  await install(project, [
    ...files,
    ...['@koa/router@15', '@opentelemetry/api@1'],
    ...Object.entries(installedCompilers).map(([name, version]) => `${name}@npm:typescript@${version}`),
  ]);
  await installSome(join(home, 'small'), ['keelson', '@keelson/testing']);
});

test.after.always(() => rm(home, { recursive: true, force: true }));

/** An import of every entry point of every package. */
async function importsOfAll(): Promise<string> {
  const scope = join(project, 'node_modules/@keelson');
  const names = ['keelson', ...(await readdir(scope)).map((name) => `@keelson/${name}`)];
  const lines: string[] = [];
  for (const name of names) {
    const manifest = await manifestOf(join(project, 'node_modules', name));
    for (const entry of Object.keys(manifest.exports ?? {}).filter((key) => !key.endsWith('.json')))
      lines.push(`import * as m${lines.length} from '${name}${entry.slice(1)}';`);
  }
  return `${lines.join('\n')}\nconsole.log(${lines.map((_, index) => `m${index}`).join(', ')});\n`;
}

/** The options of users' projects that decide which file of a package the compiler reads. */
const resolutions: Readonly<Record<string, object>> = {
  nodenext: { module: 'nodenext' },
  bundler: { module: 'esnext', moduleResolution: 'bundler' },
};

for (const [compiler, folder] of Object.entries(compilers)) {
  for (const [resolution, options] of Object.entries(resolutions)) {
    withRegistry(
      `${compiler}, ${resolution}: the types of every entry point pass the strictest checks of a user's project`,
      async (t) => {
        t.timeout(180_000);
        const name = `${compiler}-${resolution}`;
        await writeFile(join(project, `${name}.ts`), await importsOfAll());
        const compilerOptions = {
          ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false },
          ...{ ...options, target: 'es2023', noEmit: true },
        };
        await writeFile(join(project, `${name}.json`), JSON.stringify({ compilerOptions, files: [`${name}.ts`] }));
        const output = await run(process.execPath, [join(folder, 'bin/tsc'), '-p', `${name}.json`], {
          cwd: project,
        }).then(
          ({ stdout }) => stdout,
          (error: { readonly stdout: string }) => error.stdout,
        );
        t.is(output, '');
      },
    );
  }
}

withRegistry(
  'the commands work immediately after the installation, and a server with the default store starts',
  async (t) => {
    const { stdout } = await run('npx', ['--no-install', 'keelson', '--version'], { cwd: project });
    t.regex(stdout, /^keelson \d/);
    const agent = await run('npx', ['--no-install', 'keelson-agent', '--version'], { cwd: project });
    t.regex(agent.stdout, /^keelson-agent v\d/);
    const server = spawn(
      process.execPath,
      ['node_modules/keelson/dist/bundle/keelson.js', 'serve', '--insecure', '--listen', '127.0.0.1:0'],
      { cwd: project, stdio: ['ignore', 'pipe', 'ignore'] },
    );
    t.teardown(() => server.kill('SIGKILL'));
    const [line] = (await once(server.stdout, 'data')) as [Buffer];
    const url = /^keelson: serving on (\S+)/.exec(line.toString())?.[1];
    const namespaces = (await (await fetch(`${url}/api/v1/namespaces`)).json()) as { readonly kind: string };
    t.is(namespaces.kind, 'NamespaceList');
    server.kill('SIGTERM');
    t.deepEqual(await once(server, 'exit'), [0, null]);
  },
);

const testPlane = `
import { defineKind, s } from 'keelson';
import { startTestPlane } from '@keelson/testing';
const schema = s.object({ spec: s.object({ size: s.int32() }) });
const Part = defineKind({ group: 'shop.test', version: 'v1', kind: 'Part', schema });
const plane = await startTestPlane({ kinds: [Part] });
const parts = plane.client(Part).namespace('default');
await parts.create({ metadata: { name: 'bolt' }, spec: { size: 8 } });
console.log((await parts.get('bolt')).spec.size);
await plane.close();
`;

withRegistry('a test plane runs without database drivers; a missing adapter is reported in one sentence', async (t) => {
  const small = join(home, 'small');
  const drivers = ['pg', '@grpc/grpc-js'].map((name) => join('node_modules', name));
  const isInstalled = (folder: string) => Promise.all(drivers.map((path) => exists(join(folder, path))));
  t.deepEqual(await isInstalled(project), [true, true]);
  t.deepEqual(await isInstalled(small), [false, false]);
  await writeFile(join(small, 'plane.mjs'), testPlane);
  const { stdout } = await run(process.execPath, ['plane.mjs'], { cwd: small, timeout: 60_000 });
  t.is(stdout, '8\n');
  const failure = await t.throwsAsync<Error & { readonly code: number; readonly stderr: string }>(
    run(
      process.execPath,
      ['node_modules/keelson/dist/bundle/keelson.js', 'serve', '--storage', 'postgres://localhost/x'],
      {
        cwd: small,
      },
    ),
  );
  t.is(failure?.code, 2);
  t.regex(failure?.stderr ?? '', /@keelson\/storage-postgres is not installed; install it with npm install/);
});

withRegistry('npm create keelson: the tests of a project pass', async (t) => {
  t.timeout(300_000);
  const folder = { cwd: project };
  await run('npx', ['--no-install', 'create-keelson', 'made', '--kinds=Widget,BackupPlan', '--install=false'], folder);
  // The compiler that the project would have installed.
  const env = { ...process.env, PATH: `${join(root, 'node_modules/.bin')}:${process.env['PATH']}` };
  const { stdout } = await run('npm', ['test', '--silent'], { cwd: join(project, 'made'), env, timeout: 240_000 });
  // The default report for a pipe is TAP in Node 20 and for readers in later versions.
  t.regex(stdout, /^[#ℹ] pass 4$/mu);
  t.regex(stdout, /^[#ℹ] fail 0$/mu);
});

withRegistry('npm run dev restarts the server of a project after a change, and objects remain', async (t) => {
  t.timeout(300_000);
  await run('npx', ['--no-install', 'create-keelson', 'dev', '--install=false'], { cwd: project });
  const folder = join(project, 'dev');
  // The compiler that the project would have installed.
  await mkdir(join(folder, 'node_modules'));
  await symlink(join(root, 'node_modules/typescript'), join(folder, 'node_modules/typescript'));
  await run(process.execPath, ['node_modules/typescript/bin/tsc'], { cwd: folder });
  const dev = spawn(process.execPath, ['dev.mjs', '--insecure', '--listen', '127.0.0.1:0'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => dev.kill());
  let output = '';
  dev.stdout.on('data', (chunk) => {
    output += String(chunk);
  });
  // The compiler writes all files when it starts, so that the server may restart at any time: requests are repeated.
  const send = async (method: string, path: string, body?: object, type = 'application/json') => {
    const url = [...output.matchAll(/serving on (\S+)/g)].at(-1)?.[1];
    if (url === undefined) return undefined;
    const content = body && { headers: { 'content-type': type }, body: JSON.stringify(body) };
    return fetch(url + path, { method, ...content }).catch(() => undefined);
  };
  const widgets = '/apis/example.com/v1/namespaces/default/widgets';
  const widget = {
    apiVersion: 'example.com/v1',
    kind: 'Widget',
    metadata: { name: 'kept' },
    spec: { message: 'long' },
  };
  const patch = (message: string) =>
    send('PATCH', `${widgets}/kept`, { spec: { message } }, 'application/merge-patch+json');
  const answers = (code: number, request: () => ReturnType<typeof send>) =>
    until(async () => (await request())?.status === code, `the answer ${code}`, 120_000);
  await answers(409, () => send('POST', widgets, widget));
  await answers(200, () => patch('longer'));

  const source = join(folder, 'src/widget.ts');
  await writeFile(source, (await readFile(source, 'utf8')).replace('maxLength: 200', 'maxLength: 3'));
  await answers(422, () => patch('longest'));
  await answers(200, () => patch('new'));
  dev.kill('SIGTERM');
  t.deepEqual(await once(dev, 'exit'), [0, null]);
});

/** A store of a team: the memory store, by an adapter of its own that counts writes. */
const teamAdapter = `
import { s } from 'keelson';
import { StoreToken } from '@keelson/core/storage-adapter';
import { MemoryStore } from '@keelson/storage-memory';
export const written = { count: 0 };
class CountingStore extends MemoryStore {
  write(...args) {
    written.count += 1;
    return super.write(...args);
  }
}
export default {
  name: 'counting',
  optionsSchema: s.message('team.Options', 'No options.', {}),
  module: () => (bind) => bind(StoreToken, [], () => new CountingStore({})),
};
`;

const teamProgram = `
import Router from '@koa/router';
import { patchStatus } from '@keelson/controller-kit';
import { createControlPlane, defineKind, optional, s } from 'keelson';
import { written } from './adapter.mjs';

const Order = defineKind({
  group: 'shop.test',
  version: 'v1',
  kind: 'Order',
  schema: s.object({
    spec: s.object({ amount: s.int32({ minimum: 1 }) }),
    status: optional(s.object({ total: optional(s.int32()) })),
  }),
  subresources: [{ type: 'status', name: 'status' }],
});
const pricing = {
  name: 'pricing',
  kind: Order,
  reconcile: async (order, run) => {
    await patchStatus(run, Order, order, { total: order.spec.amount * 3 });
  },
};
const router = new Router();
router.get('/totals/:name', async (ctx) => {
  ctx.body = { total: (await ctx.state.client(Order).namespace('default').get(ctx.params.name)).status.total };
});

for (const storage of ['memory:', 'lmdb:./orders', { adapter: './adapter.mjs' }, process.env.DATABASE_URL].filter(Boolean)) {
  const plane = await createControlPlane({ storage, kinds: [Order], controllers: ['api', pricing] });
  const { url } = await plane.listen({ routes: [router] });
  const orders = plane.client(Order).namespace('default');
  await orders.create({ metadata: { name: 'first' }, spec: { amount: 14 } });
  for await (const { object } of orders.watch()) if (object.status?.total !== undefined) break;
  const answer = await fetch(url + '/totals/first');
  console.log(answer.status, await answer.text());
  await plane.close();
}
console.log(written.count > 0);
`;

withRegistry("a team's program has routes, a controller with a status, and runs on several stores", async (t) => {
  t.timeout(300_000);
  await writeFile(join(project, 'adapter.mjs'), teamAdapter);
  await writeFile(join(project, 'team.mjs'), teamProgram);
  const database = await startPostgresDatabase({ durable: false });
  t.teardown(() => database?.close());
  const env = { ...process.env, ...(database && { DATABASE_URL: database.storage({}) }) };
  const { stdout } = await run(process.execPath, ['team.mjs'], { cwd: project, env, timeout: 240_000 });
  t.is(stdout, `${'200 {"total":42}\n'.repeat(database ? 4 : 3)}true\n`);
});
