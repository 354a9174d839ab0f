import { readFile, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { eventually } from '@keelson/testing';
import test from 'ava';
import { memoryDirectory, removeDirectory, runKeelson, startKeelson } from '../../src/keelson-process.ts';
import { readKubeconfig } from '../../src/read-kubeconfig.ts';
import type { RecordedSpan } from '../../src/record-spans.ts';

interface Answer {
  readonly code: number;
  readonly text: string;
}

interface Watched {
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
}

/** A client with a connection of its own for each number. */
async function connections(url: string, kubeconfig: string) {
  const { authority: ca, certificate: cert, key } = await readKubeconfig(kubeconfig);
  const agents = new Map<number, Agent>();
  const agentOf = (connection: number) => {
    const agent = agents.get(connection) ?? new Agent({ keepAlive: true, maxSockets: 1, ca, cert, key });
    agents.set(connection, agent);
    return agent;
  };
  return {
    call: (connection: number, method: string, path: string, body?: unknown) =>
      new Promise<Answer>((resolve, reject) => {
        const headers = { 'content-type': 'application/json' };
        const sent = request(`${url}${path}`, { agent: agentOf(connection), method, headers }, (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (chunk: string) => {
            text += chunk;
          });
          response.on('end', () => resolve({ code: response.statusCode ?? 0, text }));
          response.on('error', reject);
        });
        sent.on('error', reject);
        sent.end(body === undefined ? undefined : JSON.stringify(body));
      }),
    /** The metadata of this many chosen events of a watch, which then ends. */
    events: (connection: number, path: string, count: number, chosen: (metadata: Watched['metadata']) => boolean) =>
      new Promise<Watched['metadata'][]>((resolve, reject) => {
        const found: Watched['metadata'][] = [];
        const sent = request(`${url}${path}`, { agent: agentOf(connection) }, (response) => {
          let rest = '';
          response.setEncoding('utf8');
          response.on('error', () => {});
          response.on('data', (chunk: string) => {
            const lines = (rest + chunk).split('\n');
            rest = lines.pop() ?? '';
            const changed = lines.map((line) => (JSON.parse(line) as { readonly object: Watched }).object.metadata);
            found.push(...changed.filter(chosen));
            if (found.length < count) return;
            resolve(found);
            sent.destroy();
          });
        });
        sent.on('error', reject);
        sent.end();
      }),
    close: () => {
      for (const agent of agents.values()) agent.destroy();
    },
  };
}

/** A server with workers, and clients of it. */
async function started(data: string, args: readonly string[]) {
  const server = await startKeelson(data, ['--workers', '3', ...args]);
  const clients = await connections(server.url, server.kubeconfig);
  return {
    server,
    ...clients,
    close: async () => {
      clients.close();
      await server.kill();
      await removeDirectory(data);
    },
  };
}

type Started = Awaited<ReturnType<typeof started>>;

/** A server with an audit log, whose start costs more than a test: of all tests for which any storage is the same. */
let shared: Started & { readonly auditLog: string };

test.before(async () => {
  const data = await memoryDirectory();
  const [policy, auditLog] = [join(data, 'policy.yaml'), join(data, 'audit.log')];
  await writeFile(
    policy,
    'apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{ level: Metadata, verbs: [create] }]\n',
  );
  const args = ['--storage', 'memory:', '--audit-policy-file', policy, '--audit-log-path', auditLog];
  shared = { ...(await started(data, args)), auditLog };
});

test.after.always(() => shared?.close());

const path = '/api/v1/namespaces/default/configmaps';
const configMap = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });
const wide = 12;

for (const storage of ['memory:', 'lmdb'] as const) {
  test(`${storage} with workers: a write is visible immediately on every connection, and metrics cover all workers`, async (t) => {
    const own = storage === 'lmdb' ? await started(await memoryDirectory(), []) : undefined;
    if (own !== undefined) t.teardown(own.close);
    const { call } = own ?? shared;
    for (let i = 0; i < 20; i++) {
      const created = await call(i % wide, 'POST', path, configMap(`c-${i}`));
      t.is(created.code, 201, created.text);
      const reads = await Promise.all(Array.from({ length: wide }, (_, j) => call(j, 'GET', `${path}/c-${i}`)));
      t.deepEqual(
        reads.map(({ code }) => code),
        reads.map(() => 200),
      );
      const listed = await call((i + 1) % wide, 'GET', path);
      const { items } = JSON.parse(listed.text) as {
        readonly items: readonly { readonly metadata: { name: string } }[];
      };
      t.true(items.some(({ metadata }) => metadata.name === `c-${i}`));
    }
    const { text } = await call(0, 'GET', '/metrics');
    const counts = text.matchAll(/^apiserver_request_total\{(.*)\} (\d+)$/gm);
    const gets = [...counts].filter(
      ([, labels = '']) => /resource="configmaps"/.test(labels) && /verb="get"/i.test(labels),
    );
    t.is(
      gets.reduce((sum, [, , count]) => sum + Number(count), 0),
      20 * wide,
    );
    if (own !== undefined) t.is(await own.server.stop(), 0, own.server.output().stderr);
  });
}

test('a watch on one connection receives the writes of all others, in order', async (t) => {
  const { call, events } = shared;
  const watched = events(100, `${path}?watch=1&resourceVersion=1`, 60, ({ name }) => name.startsWith('w-'));
  const revisions: string[] = [];
  for (let i = 0; i < 60; i++) {
    const { text } = await call(i % wide, 'POST', path, configMap(`w-${i}`));
    revisions.push((JSON.parse(text) as Watched).metadata.resourceVersion);
  }
  t.deepEqual(
    (await watched).map(({ resourceVersion }) => resourceVersion),
    revisions,
  );
});

test('requests to workers are spans of the traces of their clients, with the write to the store below them', async (t) => {
  const data = await memoryDirectory();
  t.teardown(() => removeDirectory(data));
  const file = join(data, 'spans');
  const env = {
    NODE_OPTIONS: `--import=${new URL('../../src/record-spans.js', import.meta.url).href}`,
    KEELSON_TEST_SPANS: file,
  };
  const args = ['--workers', '2', '--storage', 'memory:', '--insecure', '--opentelemetry'];
  const server = await startKeelson(data, args, 'serve', { env });
  t.teardown(() => server.kill());
  const ids = Array.from({ length: wide }, (_, index) => (index + 1).toString(16).padStart(32, 'c'));
  for (const [index, id] of ids.entries()) {
    const headers = {
      'content-type': 'application/json',
      traceparent: `00-${id}-00f067aa0ba902b7-01`,
      connection: 'close',
    };
    const body = JSON.stringify(configMap(`t-${index}`));
    t.is((await fetch(server.url + path, { method: 'POST', headers, body })).status, 201);
  }
  t.is(await server.stop(), 0, server.output().stderr);
  const spans = (await readFile(file, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as RecordedSpan);
  for (const id of ids) {
    const ofTrace = spans.filter(({ traceId }) => traceId === id);
    const request = ofTrace.find(({ name }) => name === 'POST /api/v1/namespaces/{namespace}/configmaps');
    t.is(request?.parent, '00f067aa0ba902b7');
    t.true((request?.thread ?? 0) > 0);
    t.is(ofTrace.find(({ name }) => name === 'store write')?.parent, request?.spanId);
  }
});

/** Names with this prefix in the audit log. */
const logged = async (prefix: string) =>
  (await readFile(shared.auditLog, 'utf8'))
    .split('\n')
    .slice(0, -1)
    .map((line) => (JSON.parse(line) as { readonly objectRef: { readonly name: string } }).objectRef.name)
    .filter((name) => name.startsWith(prefix))
    .sort();

const createOnAll = async (names: readonly string[]) => {
  await Promise.all(names.map((name, i) => shared.call(i % wide, 'POST', path, configMap(name))));
};

test('all workers write one audit log', async (t) => {
  const names = Array.from({ length: 50 }, (_, i) => `a-${i}`).sort();
  await createOnAll(names);
  // The log is written in batches.
  await eventually(async () => (await logged('a-')).length >= names.length, 60_000);
  t.deepEqual(await logged('a-'), names);
});

test.after('a server with workers ends with exit code 0, and its audit log has the last requests', async (t) => {
  const names = Array.from({ length: wide }, (_, i) => `z-${i}`).sort();
  await createOnAll(names);
  t.is(await shared.server.stop(), 0, shared.server.output().stderr);
  t.deepEqual(await logged('z-'), names);
});

for (const [title, args, message] of [
  ['keelson up', ['up', '--workers', '2'], /^keelson: --workers is an option of keelson serve; /],
  [
    'an audit log that blocks requests',
    [
      'serve',
      '--workers',
      '2',
      '--audit-policy-file',
      'POLICY',
      '--audit-log-path',
      '-',
      '--audit-log-mode',
      'blocking',
    ],
    /^keelson: --audit-log-mode blocking excludes --workers; use batch\n$/,
  ],
] as const) {
  test(`--workers is rejected with ${title}, in one sentence`, async (t) => {
    const data = await memoryDirectory();
    t.teardown(() => removeDirectory(data));
    const policy = join(data, 'policy.yaml');
    await writeFile(policy, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{ level: Metadata }]\n');
    const { code, stderr } = await runKeelson([
      ...args.map((arg) => (arg === 'POLICY' ? policy : arg)),
      '--data',
      data,
    ]);
    t.is(code, 2, stderr);
    t.regex(stderr, message);
  });
}
