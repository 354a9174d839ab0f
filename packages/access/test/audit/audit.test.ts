import { randomUUID } from 'node:crypto';
import { chmod, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { AccessAttributes, UserInfo } from '@keelson/core';
import { isStatusError } from '@keelson/core';
import type { AuditedRequest } from '@keelson/core/internal';
import { type Counter, FakeClock, type Metrics, noMetrics, silentLogger, systemClock } from '@keelson/core/runtime';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { AuditLog, type AuditLogOptions } from '../../src/audit/audit-log.ts';
import { type AuditSink, encodedEvent, eventBytes } from '../../src/audit/audit-sink.ts';
import { openAuditWebhook } from '../../src/audit/audit-webhook.ts';
import { createAuditor } from '../../src/audit/auditor.ts';
import { findEvents } from '../../src/audit/find-events.ts';
import { parseAuditPolicy } from '../../src/audit/policy.ts';

const policyOf = (rules: string) =>
  parseAuditPolicy(Buffer.from(`apiVersion: audit.k8s.io/v1\nkind: Policy\n${rules}`), 'policy.yaml');
const ann: UserInfo = { name: 'ann', groups: ['dev', 'system:authenticated'] };
const resource = (verb: string, more: Partial<AccessAttributes> = {}): AccessAttributes => ({
  ...{ verb, isResourceRequest: true, apiGroup: '', apiVersion: 'v1', namespace: 'ns', resource: 'pods' },
  ...{ subresource: '', name: 'p', path: '/x' },
  ...more,
});
const path = (path: string): AccessAttributes =>
  resource('get', { isResourceRequest: false, resource: '', namespace: '', name: '', apiVersion: '', path });

async function folderOf(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-audit-'));
  t.teardown(() => rm(folder, { recursive: true }));
  return folder;
}

/** Counts of the metric about errors. */
function countedErrors(): { readonly metrics: Metrics; readonly errors: () => number } {
  let errors = 0;
  const counter: Counter = { add: (value) => (errors += value) };
  return {
    metrics: { ...noMetrics, counter: ({ name }) => (name.includes('error') ? counter : { add: () => {} }) },
    errors: () => errors,
  };
}

const linesOf = async (file: string) => (await readFile(file, 'utf8')).split('\n').slice(0, -1);

/** A sink that collects the events as texts. */
const sinkOf = (events: string[], inBackground = false): AuditSink => ({
  inBackground,
  add: (event) => events.push(eventBytes(event).toString()) > 0,
  close: async () => {},
});

const uriOf = ({ namespace, resource, name, subresource, path }: AccessAttributes) =>
  resource === '' ? path : `/api/v1/namespaces/${namespace}/${resource}/${name}/${subresource}`;

const request = (attributes: AccessAttributes, more: Partial<AuditedRequest> = {}): AuditedRequest => ({
  ...{ id: 'r1', uri: uriOf(attributes), headers: {}, remoteAddress: '10.0.0.1', attributes, user: ann },
  startedAt: 0,
  ...more,
});

test('the first matching rule determines the level, as in kube-apiserver', (t) => {
  const policy = policyOf(`
omitStages: [RequestReceived]
rules:
- {level: None, users: [ann], verbs: [watch]}
- {level: Request, userGroups: [ops, dev], resources: [{group: "", resources: [pods/log, "*/scale"]}]}
- {level: RequestResponse, resources: [{group: "", resources: [configmaps], resourceNames: [c1]}], namespaces: [ns]}
- {level: Metadata, resources: [{group: apps}], omitStages: [Panic]}
- {level: Metadata, resources: [{group: "", resources: ["pods/*"]}]}
- {level: Metadata, namespaces: [""]}
- {level: Request, nonResourceURLs: ["/version", "/healthz*"]}
`);
  const levelOf = (attributes: AccessAttributes, user: UserInfo | undefined = ann) =>
    policy.decide(attributes, user).level;
  t.is(levelOf(resource('watch')), 'None');
  t.is(
    policy.decide(resource('watch', { apiGroup: 'apps' }), undefined).level,
    'Metadata',
    'no user matches no user rule',
  );
  t.is(levelOf(resource('get', { subresource: 'log' })), 'Request');
  t.is(levelOf(resource('get', { subresource: 'scale', resource: 'x' })), 'Request');
  t.is(levelOf(resource('get', { resource: 'configmaps', name: 'c1' })), 'RequestResponse');
  t.is(levelOf(resource('get', { resource: 'configmaps', name: 'c2' })), 'None');
  t.is(levelOf(resource('get', { resource: 'configmaps', name: 'c1', namespace: 'other' })), 'None');
  t.is(levelOf(resource('get', { subresource: 'exec' })), 'Metadata');
  t.is(levelOf(resource('get')), 'Metadata', 'pods/* contains pods, too');
  t.is(levelOf(resource('get', { resource: 'nodes', namespace: '' })), 'Metadata');
  t.is(levelOf(path('/healthz/ping')), 'Request');
  t.is(levelOf(path('/versions')), 'None');
  t.deepEqual([...policy.decide(resource('get', { apiGroup: 'apps' }), ann).omitStages], ['RequestReceived', 'Panic']);
});

test('an invalid policy is refused with the field and the remedy', (t) => {
  const cases: readonly (readonly [string, string])[] = [
    ['rules: []', 'policy.yaml has no rules, so nothing would be recorded'],
    ['rules: [{}]', 'rules[0].level must be one of None, Metadata, Request, RequestResponse; it is missing'],
    ['rules: [{level: metadata}]', 'RequestResponse; not "metadata"'],
    ['rules: [{level: None, omitStages: [Done]}]', 'rules[0].omitStages[0] must be one of RequestReceived'],
    ['rules: [{level: None, user: [x]}]', 'has an unknown field rules[0].user'],
    ['rules: [{level: None, users: x}]', 'rules[0].users must be'],
    ['rules: [{level: None, nonResourceURLs: [x]}]', "must begin with a '/' character"],
    ['rules: [{level: None, nonResourceURLs: ["/a*b"]}]', "'*' must be the final character"],
    ['rules: [{level: None, nonResourceURLs: [/a], namespaces: [b]}]', 'both regular resources and non-resource URLs'],
    ['rules: [{level: None, resources: [{resourceNames: [a]}]}]', 'requires at least one resource'],
    ['rules: [{level: None, resources: [{group: apps/v1}]}]', 'an API group without a version'],
  ];
  for (const [rules, expected] of cases) {
    const error = t.throws(() => policyOf(rules), { name: 'UsageError' });
    t.true(error?.message.includes(expected), `${rules}: ${error?.message}`);
  }
  t.throws(() => parseAuditPolicy(Buffer.from('kind: Policy'), 'p'), {
    message: /must contain an object with apiVersion/,
  });
});

test('2024-3177: bodies of Secrets, tokens and token reviews are not recorded, whatever the policy contains', (t) => {
  const events: string[] = [];
  const sink = sinkOf(events);
  const auditor = createAuditor({
    ...{ policy: policyOf('rules: [{level: RequestResponse}]'), sinks: [sink] },
    ...{ clock: new FakeClock(), metrics: noMetrics },
  });
  for (const attributes of [
    resource('create', { resource: 'secrets' }),
    resource('create', { resource: 'serviceaccounts', subresource: 'token' }),
    resource('create', { resource: 'tokenreviews', apiGroup: 'authentication.k8s.io' }),
  ]) {
    const record = auditor.begin(
      request(attributes, { headers: { authorization: 'Bearer canary' }, uri: '/x?token=canary' }),
    );
    const body = { bytes: Buffer.from('{"data":{"k":"canary"}}'), format: 'json' } as const;
    record?.received(body, { kind: 'Secret', schema: { node: { type: 'any' } } });
    record?.failed({
      ...{ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure' },
      message: 'canary',
      code: 422,
    } as never);
    record?.ended(422);
  }
  t.is(events.length, 6);
  for (const event of events) {
    t.false(event.includes('canary'), event);
    t.is((JSON.parse(event) as { level: string }).level, 'Metadata');
  }
});

test('sources are the forwarded addresses and, last, that of the connection', (t) => {
  const events: string[] = [];
  const auditor = createAuditor({
    ...{ policy: policyOf('rules: [{level: Metadata}]'), clock: new FakeClock(), metrics: noMetrics },
    sinks: [sinkOf(events)],
  });
  const headers = { 'x-forwarded-for': '192.0.2.1, "evil', 'user-agent': 'u'.repeat(2000) };
  auditor.begin(request(path('/a'), { headers }));
  const event = JSON.parse(events[0] ?? '') as { sourceIPs: string[]; userAgent: string };
  t.deepEqual(event.sourceIPs, ['192.0.2.1', '10.0.0.1']);
  t.true(event.userAgent.endsWith('u...TRUNCATED'));
});

test('every event has the values of its own request, in any order of clients, URLs, identifiers and times', (t) => {
  const sent = fc.record({
    id: fc.constantFrom(randomUUID(), randomUUID(), `${'"'.repeat(36)}`, 'short', 'with"quote\\'),
    uri: fc.constantFrom('/api/v1/namespaces/ns/pods/a', '/api/v1/namespaces/ns/pods/b', '/a%22?x="ü"'),
    verb: fc.constantFrom('get', 'update'),
    user: fc.constantFrom(ann, { name: 'bob "b"', groups: [] }),
    agent: fc.constantFrom('a', 'b'),
    code: fc.constantFrom(200, 201, 0),
    reason: fc.constantFrom('by "x"', ''),
    uid: fc.constantFrom(undefined, 'u1'),
    passedMs: fc.double({ min: 0, max: 2500, noNaN: true }),
  });
  const property = fc.property(
    fc.array(sent, { minLength: 20, maxLength: 90 }),
    fc.boolean(),
    (requests, background) => {
      const texts: string[] = [];
      const clock = new FakeClock();
      const policy = policyOf('rules: [{level: Metadata}]');
      const auditor = createAuditor({ policy, sinks: [sinkOf(texts, background)], clock, metrics: noMetrics });
      const times: { readonly received: number; readonly reached: number }[] = [];
      for (const { id, uri, verb, user, agent, code, reason, uid, passedMs } of requests) {
        const received = clock.now();
        const headers = { 'user-agent': agent };
        const attributes = resource(verb, { name: uri.slice(-1) });
        const record = auditor.begin(request(attributes, { id, uri, user, headers, startedAt: clock.monotonic() }));
        record?.decided({ allowed: true, reason });
        if (uid !== undefined) record?.answered({ object: { metadata: { uid } } } as never);
        clock.advance(passedMs);
        record?.ended(code);
        times.push({ received, reached: clock.now() });
      }
      auditor.flush();
      const events = texts.map((text) => JSON.parse(text) as Record<string, unknown>);
      const atStage = (stage: string) => events.filter((event) => event['stage'] === stage);
      const [received, complete] = [atStage('RequestReceived'), atStage('ResponseComplete')];
      t.deepEqual([received.length, complete.length], [requests.length, requests.length]);
      for (const [i, { id, uri, verb, user, agent, code, reason, uid }] of requests.entries()) {
        const last = complete[i] ?? {};
        for (const event of [received[i] ?? {}, last])
          t.like(event, {
            ...{ auditID: id, requestURI: uri, verb, userAgent: agent, sourceIPs: ['10.0.0.1'] },
            user: { username: user.name },
          });
        t.is((last['responseStatus'] as { code?: number }).code ?? 0, code);
        t.is((last['objectRef'] as { uid?: string }).uid, verb === 'get' ? undefined : uid);
        t.is((last['annotations'] as Record<string, string>)['authorization.k8s.io/reason'], reason);
        const [receivedText, reachedText] = [last['requestReceivedTimestamp'], last['stageTimestamp']].map(String);
        for (const time of [receivedText, reachedText]) t.regex(time ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
        t.true(Math.abs(Date.parse(receivedText ?? '') - (times[i]?.received ?? 0)) < 2);
        t.true(Math.abs(Date.parse(reachedText ?? '') - (times[i]?.reached ?? 0)) < 2);
      }
    },
  );
  fc.assert(property, { numRuns: 20 });
});

test('sinks in the background get the events of many requests together, after 5 ms at the latest, others at once', (t) => {
  const clock = new FakeClock();
  const policy = policyOf('omitStages: [RequestReceived]\nrules: [{level: Metadata}]');
  const sent = (sinks: readonly boolean[], count: number) => {
    const events: string[] = [];
    const [first = false, ...others] = sinks;
    const all = [sinkOf(events, first), ...others.map((background) => sinkOf([], background))];
    const auditor = createAuditor({ policy, sinks: all, clock, metrics: noMetrics });
    for (let i = 0; i < count; i++) auditor.begin(request(path('/a'), { id: String(i) }))?.ended(200);
    return { events, auditor };
  };
  t.is(sent([false], 3).events.length, 3);
  t.is(sent([true, false], 3).events.length, 3, 'a request may have to wait for one of the sinks');
  const { events } = sent([true, true], 3);
  t.is(events.length, 0);
  clock.advance(5);
  t.deepEqual(
    events.map((event) => (JSON.parse(event) as { auditID: string }).auditID),
    ['0', '1', '2'],
  );
  const many = sent([true], 70);
  t.is(many.events.length, 64);
  many.auditor.flush();
  t.is(many.events.length, 70);
});

const openLog = (options: AuditLogOptions, metrics = noMetrics) =>
  new AuditLog(options, { clock: systemClock, logger: silentLogger, metrics });

test('the log is rotated between lines; old files are compressed and removed, and all are private', async (t) => {
  const folder = await folderOf(t);
  const file = join(folder, 'audit.log');
  for (let round = 0; round < 4; round++) {
    const log = openLog({ path: file, maxBytes: 1000, maxBackups: 2, compress: true });
    for (let i = 0; i < 20; i++) log.add(encodedEvent(Buffer.from(JSON.stringify({ round, i, text: 'x'.repeat(20) }))));
    await log.close();
  }
  const names = (await readdir(folder)).sort();
  t.is(names.length, 3, names.join());
  t.is(names[2], 'audit.log');
  t.regex(names[0] ?? '', /^audit-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}\.log\.gz$/);
  for (const name of names) t.is((await stat(join(folder, name))).mode & 0o777, 0o600);
  const last = gunzipSync(await readFile(join(folder, names[1] ?? ''))).toString();
  t.deepEqual(JSON.parse(last.split('\n')[19] ?? ''), { round: 2, i: 19, text: 'x'.repeat(20) });
  t.is((await linesOf(file)).length, 20);
});

test('what is not a file, such as a device, is not rotated', async (t) => {
  const folder = await folderOf(t);
  await symlink('/dev/null', join(folder, 'audit.log'));
  for (const mode of ['batch', 'blocking'] as const) {
    const log = openLog({ path: join(folder, 'audit.log'), mode, maxBytes: 100, maxBackups: 1, compress: true });
    for (let i = 0; i < 20; i++) log.add(encodedEvent(Buffer.from(JSON.stringify({ i, text: 'x'.repeat(20) }))));
    await log.close();
  }
  t.deepEqual(await readdir(folder), ['audit.log']);
});

test('no event is lost at a high rate, and closing writes what is buffered', async (t) => {
  const file = join(await folderOf(t), 'audit.log');
  const log = openLog({ path: file, maxBytes: 1_000_000 });
  for (let i = 0; i < 20_000; i++) {
    log.add(encodedEvent(Buffer.from(`{"i":${i},"text":"${'x'.repeat(100)}"}`)));
    if (i % 1000 === 0) await new Promise(setImmediate);
  }
  await log.close();
  const seen: number[] = [];
  for (const name of (await readdir(join(file, '..'))).sort((a, b) =>
    a === 'audit.log' ? 1 : b === 'audit.log' ? -1 : a < b ? -1 : 1,
  ))
    for (const line of await linesOf(join(file, '..', name))) seen.push((JSON.parse(line) as { i: number }).i);
  t.deepEqual(seen, [...Array(20_000).keys()]);
});

test('F10: on a full disk events are counted as lost and requests continue, except in blocking-strict', async (t) => {
  for (const mode of ['batch', 'blocking', 'blocking-strict'] as const) {
    const { metrics, errors } = countedErrors();
    const log = openLog({ path: '/dev/full', mode }, metrics);
    const policy = policyOf('rules: [{level: Metadata}]');
    const auditor = createAuditor({ policy, sinks: [log], clock: systemClock, metrics: noMetrics });
    if (mode === 'blocking-strict') {
      const error = t.throws(() => auditor.begin(request(path('/a')))) as unknown;
      t.true(isStatusError(error) && error.code === 500 && error.message.endsWith('failed to store audit event'));
    } else t.truthy(auditor.begin(request(path('/a'))));
    await log.close();
    t.is(errors(), 1, mode);
  }
});

test('a log that cannot be opened is refused when the server starts', async (t) => {
  const folder = await folderOf(t);
  t.throws(() => openLog({ path: folder }), {
    name: 'UsageError',
    message: /--audit-log-path .* cannot be opened: EISDIR/,
  });
  const file = join(folder, 'audit.log');
  await writeFile(file, '');
  await chmod(file, 0o644);
  await openLog({ path: file }).close();
  t.is((await stat(file)).mode & 0o777, 0o600);
});

test('a webhook receives every event in batches, again after an error of the server', async (t) => {
  const received: unknown[] = [];
  let requests = 0;
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      requests += 1;
      if (requests === 1) return response.writeHead(503).end();
      const list = JSON.parse(Buffer.concat(chunks).toString()) as { kind: string; items: unknown[] };
      t.is(list.kind, 'EventList');
      received.push(...list.items);
      return response.end();
    });
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  t.teardown(() => server.close());
  const config = join(await folderOf(t), 'webhook.kubeconfig');
  const { port } = server.address() as AddressInfo;
  await writeFile(
    config,
    `{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: "http://127.0.0.1:${port}/audit"}}], ` +
      'contexts: [{name: a, context: {cluster: a, user: ""}}], current-context: a}',
  );
  const { metrics, errors } = countedErrors();
  const sink = await openAuditWebhook(config, { clock: systemClock, logger: silentLogger, metrics });
  for (let i = 0; i < 900; i++) sink.add(encodedEvent(Buffer.from(`{"i":${i}}`)));
  await sink.close();
  t.deepEqual(
    received,
    Array.from({ length: 900 }, (_, i) => ({ i })),
  );
  t.is(errors(), 0);
  await t.throwsAsync(openAuditWebhook('/nonexistent', { clock: systemClock, logger: silentLogger, metrics }), {
    name: 'UsageError',
    message: /^--audit-webhook-config-file \/nonexistent: cannot read/,
  });
});

test('a search reads rotated files in order, skips lines that are no events, and answers who deleted an object', async (t) => {
  const folder = await folderOf(t);
  const file = join(folder, 'audit.log');
  const log = openLog({ path: file, mode: 'blocking', maxBytes: 2000, compress: true });
  const policy = policyOf('rules: [{level: Metadata}]');
  const auditor = createAuditor({ policy, sinks: [log], clock: systemClock, metrics: noMetrics });
  const send = (attributes: AccessAttributes, user = ann, as?: UserInfo) => {
    const record = auditor.begin(request(attributes, { user, startedAt: systemClock.monotonic() }));
    if (as !== undefined) record?.impersonated(as);
    record?.ended(200);
  };
  for (const name of ['a', 'b', 'c']) send(resource('delete', { resource: 'configmaps', name }));
  send(resource('deletecollection', { resource: 'configmaps', name: '' }), { name: 'bob', groups: [] }, ann);
  send(resource('delete', { resource: 'configmaps', name: 'b', namespace: 'other' }));
  send(resource('delete', { resource: 'configmaps', name: 'b', subresource: 'x' }));
  await log.close();
  await writeFile(file, `${await readFile(file, 'utf8')}{"kind":"Ev`, { mode: 0o600 });
  t.true((await readdir(folder)).length > 1);
  const found: string[] = [];
  for await (const event of findEvents(file, { verb: 'delete', resource: 'configmaps', namespace: 'ns', name: 'b' }))
    found.push(`${event.user} ${event.impersonated} ${event.verb} ${event.name}`);
  t.deepEqual(found, ['ann  delete b', 'bob ann deletecollection ']);
  const none = findEvents(file, { since: Date.now() + 60_000 });
  t.true((await none.next()).done);
  await t.throwsAsync(findEvents(join(folder, 'other.log'), {}).next(), {
    message: /there is no audit log .*other.log/,
  });
});
