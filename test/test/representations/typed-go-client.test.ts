import { Agent, request } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import type { KubeObject } from '@keelson/core';
import { decoderOf } from '@keelson/core/internal';
import { Pod } from '@keelson/kinds';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { type KeelsonProcess, removeDirectory, startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';
import { findTypedList, runTypedList, type TypedLine } from '../../src/typed-list.ts';
import { readWatch } from '../../src/watch-lines.ts';

/* The typed Go client reads protobuf, and sees what it sees in JSON, and what we see in JSON. */

const json = 'application/json';
const protobuf = 'application/vnd.kubernetes.protobuf';
const pods = '/api/v1/namespaces/default/pods';
const many = 10_000;

const command = findTypedList();
const withGo = (command === undefined ? anyTest.serial.skip : anyTest.serial) as TestFn['serial'];
const suffix = command === undefined ? ' (no Go on this machine)' : '';

let server: KeelsonProcess;
const agent = new Agent({ keepAlive: true, maxSockets: 16 });

function send(method: string, path: string, body?: unknown, contentType = json): Promise<KubeObject> {
  return new Promise((resolve, reject) => {
    const bytes = body === undefined ? '' : JSON.stringify(body);
    const headers = { 'content-type': contentType, 'content-length': Buffer.byteLength(bytes) };
    const req = request(`${server.url}${path}`, { method, agent, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        if ((response.statusCode ?? 500) < 300) resolve(JSON.parse(text) as KubeObject);
        else reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
      });
    });
    req.once('error', reject);
    req.end(bytes);
  });
}

/** Pods that differ in more than their names: every special form of protobuf is among them. */
function podOf(index: number): Record<string, unknown> {
  const special = {
    ports: [{ name: 'http', containerPort: 80 + (index % 1000) }],
    env: [
      { name: 'PLAIN', value: '0' },
      { name: 'FIELD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
    ],
    resources: { requests: { cpu: `${(index % 90) + 10}m`, memory: '64Mi' }, limits: { memory: '0.5Gi' } },
    readinessProbe: { httpGet: { path: '/', port: index % 2 ? 'http' : 8080 }, periodSeconds: 5 },
    securityContext: { runAsNonRoot: false, runAsUser: 0 },
  };
  return {
    metadata: {
      name: `pod-${index}`,
      labels: { app: `app-${index % 7}` },
      annotations: { 'example.com/text': `öß ${index} \u{1f600}\n`, empty: '' },
    },
    spec: {
      containers: [{ name: 'main', image: `main:${index % 13}`, ...(index % 3 === 0 ? special : {}) }],
      ...(index % 5 === 0
        ? {
            tolerations: [{ key: 'k', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 0 }],
            volumes: [
              { name: 'v', emptyDir: { sizeLimit: '1Gi' } },
              { name: 's', secret: { secretName: 's', defaultMode: 256 } },
            ],
            terminationGracePeriodSeconds: 0,
          }
        : {}),
    },
  };
}

async function inTurn<T>(values: Iterable<T>, act: (value: T) => Promise<unknown>): Promise<void> {
  const rest = values[Symbol.iterator]();
  const worker = async () => {
    for (let next = rest.next(); !next.done; next = rest.next()) await act(next.value);
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

/** An object as decoded by Go, in the canonical form of this project. */
const complete = (object: object): KubeObject => decoderOf(Pod.schema)(object).value as KubeObject;

/** The JSON of this server without the fields that lists and Go omit. */
function bare({ kind: _kind, apiVersion: _apiVersion, ...rest }: KubeObject): KubeObject {
  return rest;
}

function sameObjects(t: ExecutionContext, lines: readonly string[], objects: readonly KubeObject[]): void {
  t.is(lines.length, objects.length);
  const differing = lines.findIndex(
    (line, i) => !isDeepStrictEqual(complete((JSON.parse(line) as TypedLine).object), bare(objects[i] as KubeObject)),
  );
  if (differing !== -1)
    t.deepEqual(complete((JSON.parse(lines[differing] ?? '') as TypedLine).object), bare(objects[differing]!));
}

anyTest.before(async (t) => {
  if (command === undefined) return;
  t.timeout(240_000);
  server = await startKeelson(await temporaryDirectory(), ['--insecure', '--storage', 'memory:']);
  await inTurn(
    Array.from({ length: many }, (_, index) => index),
    (index) => send('POST', pods, podOf(index)),
  );
});
anyTest.after.always(async () => {
  agent.destroy();
  if (server === undefined) return;
  await server.stop();
  await removeDirectory(server.data);
});

withGo(`a list of ${many} pods in protobuf, complete and in pages, equals the list in JSON${suffix}`, async (t) => {
  t.timeout(240_000);
  const list = (await send('GET', pods)) as { items: KubeObject[]; metadata: { resourceVersion: string } };
  const read = (mediaType: string, limit?: number) =>
    runTypedList(command as string, { server: server.url, mediaType, ...(limit === undefined ? {} : { limit }) });
  const whole = await read(protobuf);
  t.deepEqual(whole.summary, { resourceVersion: list.metadata.resourceVersion, count: many, pages: 1 });
  sameObjects(t, whole.lines, list.items);
  for (const [mediaType, limit, pages] of [
    [protobuf, 700, 15],
    [json, undefined, 1],
    [json, 700, 15],
  ] as const) {
    const other = await read(mediaType, limit);
    t.is(other.summary?.pages, pages);
    t.true(isDeepStrictEqual(other.lines, whole.lines), `${mediaType} in ${pages} pages`);
  }
});

withGo(
  `a watch in protobuf from any state receives ${many} pods and every change like the watch in JSON${suffix}`,
  async (t) => {
    t.timeout(240_000);
    const list = (await send('GET', `${pods}?limit=1`)) as { metadata: { resourceVersion: string } };
    const from = list.metadata.resourceVersion;
    const changed = Array.from({ length: 300 }, (_, index) => `${pods}/pod-${index}`);
    const merge = 'application/merge-patch+json';
    const last: { version: string } = { version: '' };
    const count = changed.length * 3 + 1;
    const seen = await readWatch(
      `${server.url}${pods}?watch=1&resourceVersion=${from}`,
      count,
      async () => {
        await inTurn(changed, async (path) => {
          await send('PATCH', path, { metadata: { labels: { round: '1', app: null } } }, merge);
          await send(
            'PATCH',
            `${path}/status`,
            { status: { phase: 'Running', podIP: '10.0.0.1', startTime: '2026-01-01T00:00:00Z' } },
            merge,
          );
          await send('DELETE', path, { gracePeriodSeconds: 0 });
        });
        last.version = (await send('POST', pods, podOf(many))).metadata?.resourceVersion ?? '';
      },
      120_000,
    );
    const follow = (mediaType: string, watchFrom: string) =>
      runTypedList(command as string, { server: server.url, mediaType, watchFrom, until: last.version });
    const [inProtobuf, inJson] = await Promise.all([follow(protobuf, from), follow(json, from)]);
    t.deepEqual(inProtobuf.lines, inJson.lines);
    sameObjects(
      t,
      inProtobuf.lines,
      seen.map(({ object }) => object),
    );
    t.deepEqual(
      inProtobuf.lines.map((line) => (JSON.parse(line) as TypedLine).type),
      seen.map(({ type }) => type),
    );

    // From 0: the present state as ADDED events, like a list in protobuf. The last created object is not the last
    // event.
    const now = (await send('GET', pods)) as { items: KubeObject[] };
    const final = now.items.at(-1)?.metadata?.resourceVersion ?? '';
    const initial = await runTypedList(command as string, {
      server: server.url,
      mediaType: protobuf,
      watchFrom: '0',
      until: final,
    });
    sameObjects(t, initial.lines, now.items);
    t.is(initial.lines.length, many - changed.length + 1);
  },
);
