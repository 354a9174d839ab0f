import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, lstatSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';

// The executables that envtest starts, as processes. The suite of test/tools/envtest-suite uses them from Go.

const keelson = fileURLToPath(new URL('../../../dist/bundle/keelson.js', import.meta.url));
const home = mkdtempSync(join(tmpdir(), 'keelson-envtest-'));
const assets = join(home, "the suite's assets");
test.after.always(() => rmSync(home, { recursive: true, force: true }));

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(program, args, { env, timeout: 60_000 }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode, stdout, stderr }),
    );
  });
}

test.before(async (t) => {
  const { code, stdout } = await run(process.execPath, [keelson, 'envtest', assets]);
  t.is(code, 0);
  t.is(stdout, `${assets}\n`);
});

function start(
  t: ExecutionContext,
  name: string,
  args: readonly string[],
): { child: ChildProcess; errors: () => string } {
  const child = spawn(join(assets, name), args, { stdio: ['ignore', 'pipe', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += String(chunk);
  });
  return { child, errors: () => errors };
}

/** The port that the system chose is in the line that the server writes. */
async function readyUrl(child: ChildProcess): Promise<string> {
  const [line] = (await once(child.stdout as NonNullable<ChildProcess['stdout']>, 'data')) as [Buffer];
  return /https:\S+/.exec(line.toString())?.[0] ?? '';
}

function httpsStatus(url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get(url, { rejectUnauthorized: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on('error', reject);
  });
}

test('the directory contains executables; writing it again replaces them, also when kubectl is gone', async (t) => {
  for (const name of ['kube-apiserver', 'etcd']) t.true((statSync(join(assets, name)).mode & 0o111) !== 0);
  const other = join(home, 'other');
  const bin = join(home, 'bin');
  t.is((await run('mkdir', [bin])).code, 0);
  writeFileSync(join(bin, 'kubectl'), '#!/bin/sh\n', { mode: 0o755 });
  t.is((await run(process.execPath, [keelson, 'envtest', other], { PATH: bin })).code, 0);
  t.true(lstatSync(join(other, 'kubectl')).isSymbolicLink());
  t.is((await run(process.execPath, [keelson, 'envtest', other], { PATH: '/nonexistent' })).code, 0);
  t.true(existsSync(join(other, 'kubectl')));
});

test('kube-apiserver creates its certificate, reports flags without effect, and ends on SIGTERM', async (t) => {
  const folder = join(home, 'certificates');
  const { child, errors } = start(t, 'kube-apiserver', [
    `--cert-dir=${folder}`,
    ...[
      '--secure-port=0',
      '--bind-address',
      '127.0.0.1',
      '--etcd-servers=http://127.0.0.1:1',
      '--allow-privileged=true',
    ],
    ...['--disable-admission-plugins=ServiceAccount,AlwaysPullImages', '--feature-gates', 'A=true', '--profiling'],
  ]);
  const url = await readyUrl(child);
  t.is(await httpsStatus(`${url}/healthz`), 200);
  t.is(await httpsStatus(`${url}/readyz`), 200);
  t.is(await httpsStatus(`${url}/api/v1/namespaces`), 401);
  t.true(existsSync(join(folder, 'apiserver.crt')));
  t.false(existsSync(join(folder, 'kubeconfig')));
  child.kill('SIGTERM');
  t.deepEqual(await once(child, 'exit'), [0, null]);
  t.deepEqual(errors().trim().split('\n'), [
    'keelson: --feature-gates has no effect in Keelson',
    'keelson: --profiling has no effect in Keelson',
    'keelson: --disable-admission-plugins: Keelson has no plugin AlwaysPullImages',
  ]);
});

test('etcd answers health checks at its client address until SIGTERM', async (t) => {
  const { child } = start(t, 'etcd', ['--data-dir=/nonexistent', '--listen-client-urls=http://127.0.0.1:0']);
  const [line] = (await once(child.stdout as NonNullable<ChildProcess['stdout']>, 'data')) as [Buffer];
  const url = /http:\S+/.exec(line.toString())?.[0];
  const health = await fetch(`${url}/health`);
  t.deepEqual([health.status, await health.json()], [200, { health: 'true', reason: '' }]);
  t.is((await fetch(`${url}/v3/kv/range`)).status, 404);
  child.kill('SIGTERM');
  t.deepEqual(await once(child, 'exit'), [0, null]);
});

test('invalid use is one sentence and exit code 2; help exits with 0, as suites require', async (t) => {
  const wrong = async (program: string, ...args: string[]) => {
    const { code, stderr } = await run(program, args);
    return `${code} ${stderr.trim()}`;
  };
  const [api, etcd] = [join(assets, 'kube-apiserver'), join(assets, 'etcd')];
  t.is(await wrong(api, '--secure-port=1'), '2 keelson: --cert-dir is required; envtest passes it');
  t.is(await wrong(api, 'start'), '2 keelson: unexpected argument "start"');
  t.regex(
    await wrong(api, `--cert-dir=${home}/no`, '--secure-port=nine'),
    /^2 keelson: --listen must be HOST:PORT, e.g. 127.0.0.1:6443, not "127.0.0.1:nine"$/,
  );
  t.is(
    await wrong(etcd, '--listen-client-urls=here'),
    '2 keelson: --listen-client-urls must be a URL such as http://127.0.0.1:2379, not "here"',
  );
  t.is(
    await wrong(process.execPath, keelson, 'envtest', '--bin', 'x'),
    '2 keelson: unknown option --bin; keelson envtest accepts a directory only',
  );
  t.regex(
    await wrong(process.execPath, keelson, 'envtest', '/dev/null/x'),
    /^2 keelson: the executables cannot be written to \/dev\/null\/x: ENOTDIR/,
  );
  const help = await run(api, ['--help']);
  t.is(help.code, 0);
  t.regex(help.stdout, /^\s*--client-ca-file\b/m);
  t.notRegex(help.stdout, /--insecure-port\b/);
  t.is((await run(etcd, ['--help'])).code, 0);
});
