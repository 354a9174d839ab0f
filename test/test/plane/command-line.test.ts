import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '@keelson/testing';
import test from 'ava';
import { removeDirectory, runKeelson, startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';

const mistakes: readonly (readonly [title: string, args: readonly string[], message: RegExp])[] = [
  ['an unknown command', ['srve'], /^keelson: unknown command "srve"; use up, down, serve, .*, version or help\n$/],
  ['an unknown option', ['serve', '--listn', 'x'], /^keelson: unknown option --listn; did you mean --listen\?\n$/],
  [
    'a storage URL with an unknown scheme',
    ['serve', '--storage', 'lmbd:x'],
    /^keelson: --storage "lmbd:x" must begin with one of .*; did you mean lmdb\?\n$/,
  ],
  [
    'a module of kinds that does not exist',
    ['serve', '--storage', 'memory:', '--kinds', './nothing.js'],
    /^keelson: --kinds \.\/nothing\.js cannot be loaded: /,
  ],
  [
    'plain HTTP on an address other than loopback',
    ['serve', '--insecure', '--listen', '0.0.0.0:0'],
    /^keelson: --insecure serves loopback addresses only/,
  ],
];

test('compiled code is cached in a folder of the user, and not without a home directory', async (t) => {
  const directory = await temporaryDirectory();
  t.teardown(() => removeDirectory(directory));
  // Node has this function from version 22.1 on.
  const preload = join(directory, 'preload.cjs');
  await writeFile(preload, "require('node:module').enableCompileCache = (folder) => console.error(folder);\n");
  const folders = async (home: Readonly<Record<string, string>>) =>
    (await runKeelson(['version'], { NODE_OPTIONS: `--require ${preload}`, HOME: '', XDG_CACHE_HOME: '', ...home }))
      .stderr;
  t.is(await folders({ HOME: '/home/user' }), '/home/user/.cache/keelson\n');
  t.is(await folders({ HOME: '/home/user', XDG_CACHE_HOME: '/caches' }), '/caches/keelson\n');
  t.is(await folders({}), '');
});

test('a server writes its compiled code once it has started, so that a killed one leaves it too', async (t) => {
  const data = await temporaryDirectory();
  t.teardown(() => removeDirectory(data));
  // Node has this function from version 22.10 on.
  const preload = join(data, 'preload.cjs');
  await writeFile(preload, "require('node:module').flushCompileCache = () => console.error('code is written');\n");
  const env = { NODE_OPTIONS: `--require ${preload}`, HOME: data };
  const server = await startKeelson(data, ['--storage', 'memory:'], 'serve', { env });
  t.teardown(() => server.kill());
  t.true(await eventually(() => server.output().stderr.includes('code is written')));
});

for (const [title, args, message] of mistakes) {
  test(`${title} is reported in one sentence on stderr, with exit code 2`, async (t) => {
    const data = await temporaryDirectory();
    t.teardown(() => removeDirectory(data));
    const { code, stdout, stderr } = await runKeelson(args, { KEELSON_DATA: data });
    t.is(code, 2, stderr);
    t.regex(stderr, message);
    t.is(stderr.trim().split('\n').length, 1);
    t.is(stdout, '');
  });
}

test('help lists every option, and version prints a version', async (t) => {
  const help = await runKeelson(['help']);
  t.is(help.code, 0);
  for (const option of [
    '--storage URL',
    '--listen HOST:PORT',
    '--insecure',
    '--data DIR',
    '--config FILE',
    '--kinds MODULE',
  ])
    t.true(help.stdout.includes(option), option);
  t.regex((await runKeelson(['version'])).stdout, /^keelson \d+\.\d+\.\d+\n$/);
});

test('the error of a port in use names the option to change, with exit code 1', async (t) => {
  const data = await temporaryDirectory();
  const first = await startKeelson(data, ['--insecure', '--storage', 'memory:']);
  t.teardown(async () => {
    await first.stop();
    await removeDirectory(data);
  });
  const { code, stderr } = await runKeelson([
    'serve',
    '--insecure',
    '--storage',
    'memory:',
    '--listen',
    new URL(first.url).host,
    '--data',
    `${data}/other`,
  ]);
  t.is(code, 1);
  t.regex(stderr, /is in use; stop the other process or choose another address with --listen/);
});

test('by default the server uses TLS, and clients without a certificate have access to health and version only', async (t) => {
  const data = await temporaryDirectory();
  const server = await startKeelson(data, ['--storage', 'memory:']);
  t.teardown(async () => {
    await server.stop();
    await removeDirectory(data);
  });
  t.regex(server.url, /^https:\/\/127\.0\.0\.1:\d+$/);
  t.true(existsSync(server.kubeconfig));
  const { request } = await import('node:https');
  const status = (path: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      request(`${server.url}${path}`, { rejectUnauthorized: false }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .once('error', reject)
        .end();
    });
  t.is(await status('/readyz'), 200);
  t.is(await status('/version'), 200);
  t.is(await status('/api/v1/namespaces'), 401);
  t.is(await status('/apis'), 401);
});

test('a reader that closes the output early causes no error', async (t) => {
  const bundle = new URL('../../../../packages/keelson/dist/bundle/keelson.js', import.meta.url);
  const child = spawn(process.execPath, [fileURLToPath(bundle), 'help'], { stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.destroy();
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const [code] = (await once(child, 'close')) as [number | null];
  t.is(stderr, '');
  t.is(code, 0);
});

test('flowControl of the config file limits the requests of a server', async (t) => {
  const data = await temporaryDirectory();
  t.teardown(() => removeDirectory(data));
  const config = join(data, 'config.yaml');
  await writeFile(config, 'flowControl: { watches: 1, levels: [{ name: batch, shares: 3 }] }\n');
  const server = await startKeelson(data, ['--storage', 'memory:', '--insecure', '--config', config]);
  t.teardown(() => server.stop());
  const abandoned = new AbortController();
  const first = await fetch(`${server.url}/api/v1/configmaps?watch=1`, { signal: abandoned.signal });
  t.is(first.status, 200);
  const second = await fetch(`${server.url}/api/v1/configmaps?watch=1`);
  t.is(second.status, 429);
  t.is(second.headers.get('retry-after'), '1');
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  t.regex(metrics, /^apiserver_flowcontrol_nominal_limit_seats\{priority_level="batch"\} \d+$/m);
  abandoned.abort();
});
