import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdir, readFile, stat } from 'node:fs/promises';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import type { Pod } from '@keelson/kinds';
import { freePort, manifest, temporaryDirectory, until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { type LogRequest, type PodQueries, PodQueryError } from '../../src/base/contracts/pod-queries.ts';
import { noEvents } from '../../src/base/events/event-recorder.ts';
import { createTextMetrics } from '../../src/serve/stats/text-metrics.ts';
import { SubmitSource } from '../../src/sources/submit-source.ts';
import { submittedManifestsIn } from '../../src/sources/submitted-manifests.ts';
import { openTestServers } from '../support/test-servers.ts';

const web: Pod = {
  metadata: { name: 'web-n1', namespace: 'default', uid: 'u1' },
  spec: { containers: [{ name: 'main', image: 'host' }] } as Pod['spec'],
  status: { phase: 'Running' },
};

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

interface Ask {
  readonly method?: string;
  readonly body?: string;
  readonly headers?: Record<string, string>;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly localAddress?: string;
}

function ask(url: string, { body, ...rest }: Ask = {}): Promise<Answer> {
  const request = url.startsWith('https:') ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { agent: false, rejectUnauthorized: false, ...rest }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('error', reject);
      incoming.on('end', () =>
        resolve({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          body: Buffer.concat(chunks).toString(),
        }),
      );
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

async function open(t: ExecutionContext, words: readonly string[] = [], state: Partial<PodQueries> = {}) {
  const { servers, directory, clock, logger } = await openTestServers(t, words, async (place) => {
    const store = submittedManifestsIn(join(place.directory, 'manifests'));
    const submit = new SubmitSource({ ...place, store, sink: () => {}, nodeName: 'n1', events: noEvents });
    await submit.start();
    const metrics = createTextMetrics();
    metrics.counter({ name: 'keelson_agent_things_total', help: 'Things.', labels: ['kind'] }).add(2, { kind: 'a"b' });
    return {
      state: {
        pods: () => [web],
        runningPods: async () => [{ ...web, status: {} }],
        logs: async function logs() {
          return (async function* () {
            yield Buffer.from('one\n');
            yield Buffer.from('two\n');
          })();
        },
        ...state,
      },
      submit,
      metrics,
      effective: { gates: place.config.gates },
    };
  });
  return {
    servers,
    directory,
    clock,
    logger,
    main: `https://127.0.0.1:${servers.port}`,
    readOnly: `http://127.0.0.1:${servers.readOnlyPort}`,
    healthz: `http://127.0.0.1:${servers.healthzPort}`,
  };
}

const sizes = { usedBytes: 1, inodesUsed: 2, capacityBytes: 10, availableBytes: 9, inodes: 20, inodesFree: 18 };

test('the main port serves pods, running pods, health, metrics, machine, statistics and options over TLS', async (t) => {
  const { main } = await open(t, ['--feature-gates=PodPriority=true'], {
    usage: async () => [
      {
        namespace: 'default',
        name: 'web-n1',
        uid: 'u1',
        startTimeMs: 0,
        containers: [{ name: 'main', startTimeMs: 0, timeMs: 1000, cpuNanoSeconds: 5, memoryWorkingSetBytes: 7 }],
        volumes: [{ name: 'tmp', timeMs: 1000, ...sizes }],
      },
    ],
  });
  const pods = JSON.parse((await ask(`${main}/pods`)).body);
  t.like(pods, {
    kind: 'PodList',
    apiVersion: 'v1',
    items: { 0: { metadata: { name: 'web-n1' }, status: { phase: 'Running' } } },
  });
  t.is(JSON.parse((await ask(`${main}/runningpods/`)).body).items.length, 1);
  t.is((await ask(`${main}/healthz`)).body, 'ok');
  const summary = JSON.parse((await ask(`${main}/stats/summary`)).body);
  t.is(summary.node.nodeName, 'n1');
  t.true(summary.node.memory.workingSetBytes > 0);
  t.like(summary.pods[0], {
    podRef: { name: 'web-n1', namespace: 'default', uid: 'u1' },
    containers: { 0: { name: 'main', cpu: { usageCoreNanoSeconds: 5 }, memory: { workingSetBytes: 7 } } },
  });
  t.deepEqual(summary.pods[0].volume, [{ name: 'tmp', time: '1970-01-01T00:00:01.000Z', ...sizes }]);
  t.regex(
    (await ask(`${main}/metrics`)).body,
    /# TYPE keelson_agent_things_total counter\nkeelson_agent_things_total\{kind="a\\"b"\} 2\n/,
  );
  t.true(JSON.parse((await ask(`${main}/spec/`)).body).num_cores > 0);
  t.true(JSON.parse((await ask(`${main}/configz`)).body).agentconfig.gates.PodPriority);
  t.is((await ask(`${main}/nope`)).status, 404);
  t.is((await ask(`${main}/%zz`)).status, 400);
  const wrong = await ask(`${main}/pods`, { method: 'POST' });
  t.deepEqual([wrong.status, wrong.headers.allow], [405, 'GET']);
  t.is((await ask(`${main}/debug/pprof/`)).status, 200);
});

test('--read-only-port: read-only paths are served, all others are rejected', async (t) => {
  const { readOnly, servers } = await open(t, [
    `--read-only-port=${await freePort()}`,
    '--enable-server=false',
    '--anonymous-auth=false',
  ]);
  t.is(servers.port, undefined, '--enable-server=false closes the main port alone');
  for (const path of ['/pods', '/healthz', '/healthz/ping', '/stats/summary', '/metrics', '/spec/'])
    t.is((await ask(readOnly + path)).status, 200, path);
  for (const path of [
    '/runningpods',
    '/containerLogs/default/web-n1/main',
    '/exec/a/b/c',
    '/run/a/b/c',
    '/attach/a/b/c',
    '/logs/',
  ]) {
    const answer = await ask(readOnly + path);
    t.deepEqual([answer.status, answer.body], [405, 'Debug endpoints are disabled.\n'], path);
  }
  for (const path of ['/configz', '/manifests']) t.is((await ask(readOnly + path)).status, 404, path);
  t.is(
    (
      await ask(`${readOnly}/manifests`, {
        method: 'POST',
        body: manifest('x'),
        headers: { 'Content-Type': 'application/yaml' },
      })
    ).status,
    404,
  );
});

test('--enable-debugging-handlers=false disables paths that read logs and run commands', async (t) => {
  const { main } = await open(t, ['--enable-debugging-handlers=false']);
  for (const path of ['/runningpods', '/containerLogs/default/web-n1/main', '/run/a/b/c'])
    t.is((await ask(main + path)).status, 405, path);
  t.is((await ask(`${main}/pods`)).status, 200);
});

test('--healthz-port and --healthz-bind-address: only health is served, which fails when the sync loop is stuck', async (t) => {
  const port = await freePort();
  let last: number | undefined = 0;
  const { healthz, clock } = await open(
    t,
    [`--healthz-port=${port}`, '--healthz-bind-address=127.0.0.1', '--sync-frequency=4m'],
    { lastSyncLoopMs: () => last },
  );
  t.is((await ask(`${healthz}/healthz`)).body, 'ok');
  t.is((await ask(`${healthz}/pods`)).status, 404);
  clock.advance(8 * 60_000);
  t.is((await ask(`${healthz}/healthz/syncloop`)).status, 200, 'twice the sync frequency is allowed');
  clock.advance(1);
  const stuck = await ask(`${healthz}/healthz/syncloop`);
  t.is(stuck.status, 500);
  t.regex(stuck.body, /has not gone round for 480 s/);
  t.is((await ask(`${healthz}/healthz/ping`)).status, 200);
  last = clock.monotonic();
  t.is((await ask(`${healthz}/healthz`)).status, 200);
  last = undefined;
  t.is((await ask(`${healthz}/healthz`)).status, 500, 'a loop that never began counts from the start');
});

test('container logs: the query is validated, missing objects are named, and the log is streamed', async (t) => {
  const asked: LogRequest[] = [];
  const { main, clock } = await open(t, [], {
    logs: async (request) => {
      asked.push(request);
      if (request.previous) throw new PodQueryError('Invalid', 'previous terminated container "main" not found');
      return (async function* () {
        yield Buffer.from('one\n');
        if (request.follow) await new Promise((resolve) => request.signal.addEventListener('abort', resolve));
      })();
    },
  });
  const logs = `${main}/containerLogs/default/web-n1/main`;
  const plain = await ask(`${logs}?tailLines=5&timestamps=true&limitBytes=100&sinceSeconds=10`);
  t.deepEqual([plain.status, plain.body, plain.headers['content-type']], [200, 'one\n', 'text/plain']);
  t.like(asked[0], { tailLines: 5, timestamps: true, limitBytes: 100, follow: false, sinceMs: clock.now() - 10_000 });
  await ask(`${logs}?tail=all`);
  t.is(asked[1]?.tailLines, undefined);
  await ask(`${logs}?sinceTime=2026-01-01T00:00:00.5Z`);
  t.is(asked[2]?.sinceMs, Date.UTC(2026, 0, 1) + 500);
  for (const [query, status] of [
    ['tailLines=x', 400],
    ['tailLines=-1', 422],
    ['sinceSeconds=0', 422],
    ['sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z', 422],
    ['sinceTime=yesterday', 400],
    ['limitBytes=0', 422],
    ['follow=maybe', 400],
    ['previous=true', 400],
  ] as const) {
    t.is((await ask(`${logs}?${query}`)).status, status, query);
  }
  t.deepEqual(await ask(`${main}/containerLogs/default/nope/main`).then(({ status, body }) => [status, body]), [
    404,
    'pod "nope" does not exist\n',
  ]);
  t.is((await ask(`${main}/containerLogs/default/web-n1/other`)).status, 404);
  t.is((await ask(`${main}/containerLogs/default/web-n1`)).status, 400);
  const before = asked.length;
  await new Promise<void>((resolve, reject) => {
    const outgoing = httpsRequest(`${logs}?follow=1`, { agent: false, rejectUnauthorized: false }, (incoming) => {
      incoming.on('error', () => {});
      incoming.once('data', () => {
        outgoing.destroy();
        resolve();
      });
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
  await until(() => asked[before]?.signal.aborted);
  t.pass('whoever leaves ends the reading');
});

test('--cert-dir: a key pair is created once, with the names of the node, a private key file mode of 0600, and reused', async (t) => {
  const { main, directory, servers } = await open(t);
  t.is((await ask(`${main}/healthz`)).status, 200);
  const path = join(directory, 'pki', 'keelson-agent.crt');
  const certificate = new X509Certificate(await readFile(path));
  t.truthy(certificate.checkHost('n1'));
  t.truthy(certificate.checkIP('127.0.0.1'));
  t.is((await stat(join(directory, 'pki', 'keelson-agent.key'))).mode & 0o777, 0o600);
  await servers.close();
  const again = await open(t, [`--cert-dir=${directory}/pki`]);
  t.is((await ask(`${again.main}/healthz`)).status, 200);
  t.is(new X509Certificate(await readFile(path)).serialNumber, certificate.serialNumber);
});

/** An authority, a server pair and client pairs by openssl. */
async function authority(directory: string) {
  await mkdir(directory, { recursive: true });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const openssl = (...words: string[]) => execFileSync('openssl', words, { cwd: directory, stdio: 'pipe' });
  const root = (name: string) =>
    openssl(
      'req',
      '-x509',
      ...newKey,
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.crt`,
      '-subj',
      `/CN=${name}`,
      '-days',
      '2',
    );
  const leaf = (name: string, subject: string, issuer: string) => {
    openssl('req', ...newKey, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', subject);
    openssl(
      'x509',
      '-req',
      '-in',
      `${name}.csr`,
      '-CA',
      `${issuer}.crt`,
      '-CAkey',
      `${issuer}.key`,
      '-CAcreateserial',
      '-out',
      `${name}.crt`,
      '-days',
      '2',
    );
  };
  root('ca');
  root('foreign');
  leaf('admin', '/O=ops/CN=admin', 'ca');
  leaf('stranger', '/CN=stranger', 'foreign');
  leaf('server', '/CN=served', 'ca');
  return { read: (name: string) => readFile(join(directory, name)), path: (name: string) => join(directory, name) };
}

test('--client-ca-file, --anonymous-auth: client certificates authenticate; an invalid one is rejected, not anonymous', async (t) => {
  const files = await authority(await temporaryDirectory(t));
  const pair = async (name: string) => ({
    cert: await files.read(`${name}.crt`),
    key: await files.read(`${name}.key`),
  });
  const closed = await open(t, [`--client-ca-file=${files.path('ca.crt')}`, '--anonymous-auth=false']);
  t.is((await ask(`${closed.main}/pods`)).status, 401);
  t.is((await ask(`${closed.main}/nope`)).status, 401, 'unauthenticated clients do not learn which paths exist');
  t.is((await ask(`${closed.main}/pods`, await pair('admin'))).status, 200);
  t.is((await ask(`${closed.main}/pods`, await pair('stranger'))).status, 401);
  const anybody = await open(t, [`--client-ca-file=${files.path('ca.crt')}`]);
  t.is((await ask(`${anybody.main}/pods`)).status, 200);
  t.is(
    (await ask(`${anybody.main}/pods`, { headers: { Authorization: 'Bearer x' } })).status,
    200,
    'without the webhook the header means nothing',
  );
  t.is((await ask(`${anybody.main}/pods`, await pair('stranger'))).status, 401);
  await t.throwsAsync(open(t, ['--client-ca-file=/nowhere/ca.crt']), { message: /^--client-ca-file: cannot read/ });
});

test('--tls-cert-file and --tls-private-key-file: the key pair is used; an invalid one prevents the start', async (t) => {
  const files = await authority(await temporaryDirectory(t));
  const { main } = await open(t, [
    `--tls-cert-file=${files.path('server.crt')}`,
    `--tls-private-key-file=${files.path('server.key')}`,
  ]);
  const subject = await new Promise((resolve, reject) => {
    const outgoing = httpsRequest(`${main}/healthz`, { agent: false, rejectUnauthorized: false }, (incoming) => {
      resolve((incoming.socket as import('node:tls').TLSSocket).getPeerCertificate().subject.CN);
      incoming.resume();
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
  t.is(subject, 'served');
  await t.throwsAsync(
    open(t, [`--tls-cert-file=${files.path('server.crt')}`, `--tls-private-key-file=${files.path('admin.key')}`]),
    { message: /do not match/ },
  );
  await t.throwsAsync(open(t, ['--tls-cert-file=/nowhere', '--tls-private-key-file=/nowhere']), {
    message: /^--tls-cert-file: cannot read/,
  });
});

test('manifests are submitted, listed and deleted through the main port', async (t) => {
  const { main } = await open(t);
  const yaml = { 'Content-Type': 'application/yaml' };
  const put = await ask(`${main}/manifests`, { method: 'POST', body: manifest('web'), headers: yaml });
  t.is(put.status, 200, put.body);
  t.is(JSON.parse(put.body).items[0].metadata.name, 'web-n1');
  t.is(JSON.parse((await ask(`${main}/manifests`)).body).items.length, 1);
  const refused = await ask(`${main}/manifests`, { method: 'POST', body: manifest('BAD'), headers: yaml });
  t.is(refused.status, 422);
  t.regex(refused.body, /^the manifest metadata.name/);
  t.is(
    (await ask(`${main}/manifests`, { method: 'POST', body: manifest('x'), headers: { 'Content-Type': 'text/plain' } }))
      .status,
    415,
  );
  t.is(
    (await ask(`${main}/manifests`, { method: 'POST', body: 'x'.repeat(4 * 1024 * 1024), headers: yaml })).status,
    413,
  );
  t.is((await ask(`${main}/manifests/default/nope`, { method: 'DELETE' })).status, 404);
  t.is((await ask(`${main}/manifests/default/web`, { method: 'DELETE' })).status, 200);
  t.is(JSON.parse((await ask(`${main}/manifests`)).body).items.length, 0);
  await ask(`${main}/manifests`, { method: 'PUT', body: manifest('only'), headers: yaml });
  t.deepEqual(
    JSON.parse((await ask(`${main}/manifests`)).body).items.map((pod: Pod) => pod.metadata?.name),
    ['only-n1'],
  );
});

test('a port in use fails the start and leaves no port open', async (t) => {
  const first = await open(t);
  const free = await freePort();
  await t.throwsAsync(open(t, [`--port=${free}`, `--read-only-port=${first.servers.port}`]), { code: 'EADDRINUSE' });
  await t.throwsAsync(ask(`https://127.0.0.1:${free}/healthz`), { code: 'ECONNREFUSED' });
});

test('an error in the pod life cycle is an internal error without details', async (t) => {
  const { main, logger } = await open(t, [], {
    runningPods: async () => {
      throw new Error('secret detail');
    },
  });
  const answer = await ask(`${main}/runningpods`);
  t.deepEqual([answer.status, answer.body], [500, 'internal error\n']);
  t.is(logger.lines.at(-1)?.message, 'request failed');
});

test('metrics of each type are written in the text format of Prometheus', async (t) => {
  const metrics = createTextMetrics();
  metrics.gauge({ name: 'g', help: 'A\nb.' }).set(3);
  const histogram = metrics.histogram({ name: 'h_seconds', help: 'H.', labels: ['op'], buckets: [1, 2] });
  for (const value of [0.5, 1, 1.5, 9]) histogram.observe(value, { op: 'x' });
  metrics.counter({ name: 'empty_total', help: 'E.' });
  t.is(
    await metrics.text(),
    `# HELP g A\\nb.
# TYPE g gauge
g 3

# HELP h_seconds H.
# TYPE h_seconds histogram
h_seconds_bucket{le="1",op="x"} 2
h_seconds_bucket{le="2",op="x"} 3
h_seconds_bucket{le="+Inf",op="x"} 4
h_seconds_sum{op="x"} 12
h_seconds_count{op="x"} 4

# HELP empty_total E.
# TYPE empty_total counter
empty_total 0
`,
  );
  t.throws(() => metrics.gauge({ name: 'h_seconds', help: '' }));
});
