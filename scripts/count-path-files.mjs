// Counts the source files that execute code during one request: a GET of one object, a create, and a pod from its
// create to Running on the process runtime. The number of files is what an engineer must open to follow the request.
//
//   node scripts/count-path-files.mjs [--check] [--list] [--only get,create,pod]
//
// The counters of V8 are reset after a warm start, so that module initialisation and the first call of lazily loaded
// code do not count. `--check` fails when a total exceeds its limit, `--list` prints the names of the files. Packages
// must be built (`npx tsc -b`); bundles are not used.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { Session } from 'node:inspector/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const self = fileURLToPath(import.meta.url);
const root = fileURLToPath(new URL('..', import.meta.url));
const limits = { get: 25, create: 50, pod: 160 };
const childFlag = 'KEELSON_COUNT_PATH_FILES';
const waitMs = 60_000;
/** Counted runs of each kind: enough that no timer fires in all of them. */
const rounds = 6;
/** Counted runs while the number of files is above the limit: a timer fires in each of the first on a busy machine. */
const mostRounds = 20;

if (process.env[childFlag] === undefined) await main();
else await countInThisProcess();

/** In the server: answers every IPC message with the executed functions per file since the previous message. */
async function countInThisProcess() {
  delete process.env[childFlag];
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  process.on('message', async () => {
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const workspace = new URL('..', import.meta.url).href;
    const files = {};
    for (const { url, functions } of result) {
      if (!url.startsWith(workspace) || !url.includes('/dist/src/')) continue;
      // The function that begins at the start of a module is its initialisation.
      const executed = functions.filter(({ ranges: [range] }) => range.count > 0 && range.startOffset > 0).length;
      if (executed > 0) files[url.slice(workspace.length).replace('/dist/src/', '/src/')] = executed;
    }
    process.send(files);
  });
  // The command ends by a signal, not by the end of its channel.
  process.channel?.unref();
}

async function withServer(args, run) {
  const data = mkdtempSync(join(tmpdir(), 'keelson-count-'));
  const entry = join(root, 'packages/keelson/dist/src/bin/keelson.js');
  const child = spawn(
    process.execPath,
    ['--conditions=keelson-modules', '--import', self, entry, ...args, '--data', data, '--listen=127.0.0.1:0'],
    {
      cwd: data,
      env: { ...process.env, [childFlag]: '1', KEELSON_LOG_LEVEL: 'error' },
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    },
  );
  const ended = once(child, 'exit');
  try {
    const [line] = await Promise.race([
      once(child.stdout, 'data'),
      ended.then(() => Promise.reject(new Error('the server ended before it was ready'))),
    ]);
    const url = /serving on (\S+)/.exec(String(line))[1];
    const agent = new Agent({ keepAlive: true, ...clientIdentity(join(data, 'kubeconfig')) });
    const call = (method, path, body) => send(agent, method, `${url}${path}`, body);
    const counted = async () => {
      const answer = once(child, 'message');
      child.send('take');
      return (await answer)[0];
    };
    return await run({ call, counted });
  } finally {
    child.kill('SIGTERM');
    await ended;
    rmSync(data, { recursive: true, force: true });
  }
}

/** Certificates of the administrator in the client config that the server writes. */
function clientIdentity(file) {
  const text = readFileSync(file, 'utf8');
  const data = (key) => Buffer.from(new RegExp(`${key}"?: ?"?([A-Za-z0-9+/=]+)`).exec(text)[1], 'base64');
  return {
    ca: data('certificate-authority-data'),
    cert: data('client-certificate-data'),
    key: data('client-key-data'),
  };
}

function send(agent, method, url, body) {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', accept: 'application/json' };
    const sent = request(url, { agent, method, headers });
    sent.on('error', reject);
    sent.on('response', (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        if (response.statusCode >= 300) reject(new Error(`${method} ${url}: ${response.statusCode} ${text}`));
        else resolve(JSON.parse(text));
      });
    });
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/**
 * The files that every one of several equal runs executes. A first run is not counted, because it loads and creates
 * what later runs reuse. What timers execute meanwhile differs between runs, so it is not in the result.
 */
async function ofEveryRun(counted, run, limit) {
  await run('warm-up');
  let common;
  const isAbove = () => Object.keys(common).length > limit;
  for (let round = 1; round <= rounds || (round <= mostRounds && isAbove()); round++) {
    await delay(700);
    await counted();
    await run(`run-${round}`);
    const files = await counted();
    common = Object.fromEntries(Object.entries(files).filter(([file]) => common === undefined || file in common));
  }
  return common;
}

function countRequests() {
  return withServer(['serve', '--storage=memory:', '--controllers=false'], async ({ call, counted }) => {
    const collection = '/api/v1/namespaces/default/configmaps';
    const create = (name) =>
      call('POST', collection, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name },
        data: { key: 'value' },
      });
    const createFiles = await ofEveryRun(counted, create, limits.create);
    const getFiles = await ofEveryRun(counted, (name) => call('GET', `${collection}/${name}`), limits.get);
    return { get: getFiles, create: createFiles };
  });
}

function podNamed(name, nodeName) {
  const container = { name: 'main', image: 'host', command: ['/bin/sleep', '600'] };
  const spec = {
    nodeName,
    // With a grace period of 0 the pod would be deleted before its process has ended, which would then outlive the
    // node.
    terminationGracePeriodSeconds: 1,
    automountServiceAccountToken: false,
    containers: [container],
  };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec };
}

function countPodStart() {
  return withServer(['up', '--storage=memory:', '--controllers=false'], async ({ call, counted }) => {
    const nodeName = hostname().trim().toLowerCase();
    const pods = '/api/v1/namespaces/default/pods';
    const until = async (what, probe) => {
      for (const start = Date.now(); Date.now() - start < waitMs; await delay(100)) {
        if (await probe().catch(() => false)) return;
      }
      throw new Error(`not reached within ${waitMs / 1000} s: ${what}`);
    };
    await until('the node is ready', async () => {
      const node = await call('GET', `/api/v1/nodes/${nodeName}`);
      return node.status.conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
    });
    // The controllers, which are off, would create the account that every pod has.
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
    await call('POST', '/api/v1/namespaces/default/serviceaccounts', account);
    const start = async (name) => {
      await call('POST', pods, podNamed(name, nodeName));
      await until(`pod ${name} runs`, async () => (await call('GET', `${pods}/${name}`)).status.phase === 'Running');
    };
    const files = await ofEveryRun(counted, start, limits.pod);
    const started = await call('GET', pods);
    for (const { metadata } of started.items) {
      const { name } = metadata;
      await call('DELETE', `${pods}/${name}`);
      await until(`pod ${name} is deleted`, () =>
        call('GET', `${pods}/${name}`).then(
          () => false,
          () => true,
        ),
      );
    }
    return { pod: files };
  });
}

function report(title, files, list) {
  const perPackage = new Map();
  for (const file of Object.keys(files)) {
    const name = file.split('/')[1];
    perPackage.set(name, (perPackage.get(name) ?? 0) + 1);
  }
  const functions = Object.values(files).reduce((sum, count) => sum + count, 0);
  const packages = [...perPackage].sort((a, b) => b[1] - a[1]).map(([name, count]) => `${name} ${count}`);
  const total = Object.keys(files).length;
  process.stdout.write(`${title}: ${total} files, ${functions} functions (${packages.join(', ')})\n`);
  if (list) {
    for (const file of Object.keys(files).sort()) {
      const lines = readFileSync(join(root, file.replace(/\.js$/, '.ts')), 'utf8').split('\n').length - 1;
      process.stdout.write(`  ${file.replace(/\.js$/, '.ts')}  ${files[file]} functions, ${lines} lines\n`);
    }
  }
  return total;
}

async function main() {
  const words = process.argv.slice(2);
  const only = words[words.indexOf('--only') + 1]?.split(',');
  const wanted = (name) => !words.includes('--only') || only.includes(name);
  const results = {
    ...(wanted('get') || wanted('create') ? await countRequests() : {}),
    ...(wanted('pod') ? await countPodStart() : {}),
  };
  let exceeded = false;
  for (const [name, files] of Object.entries(results)) {
    if (!wanted(name)) continue;
    const total = report(name, files, words.includes('--list'));
    if (total <= limits[name]) continue;
    process.stdout.write(`  above the limit of ${limits[name]}\n`);
    exceeded = true;
  }
  if (words.includes('--check') && exceeded) process.exitCode = 1;
}
