import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseTokenFile, tokenUsers } from '@keelson/access';
import { systemClock } from '@keelson/core/runtime';
import test, { type ExecutionContext } from 'ava';
import { main } from '../../src/cli/main.ts';
import { auditOptions } from '../../src/config/audit-options.ts';
import { loadOptions } from '../../src/config/load-options.ts';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import { loadCredentials } from '../../src/tls/credentials.ts';

const canary = 'Y2FuYXJ5LTQyNDI=';
const token = 'canary-token-1717';

interface AuditEvent {
  readonly stage: string;
  readonly level: string;
  readonly verb: string;
  readonly auditID: string;
  readonly user: { readonly username?: string };
  readonly impersonatedUser?: { readonly username: string };
  readonly objectRef?: Readonly<Record<string, string>>;
  readonly responseStatus?: { readonly code: number; readonly reason?: string };
  readonly requestObject?: { readonly data?: unknown };
  readonly responseObject?: { readonly metadata: { readonly name: string } };
  readonly annotations?: Readonly<Record<string, string>>;
}

async function served(t: ExecutionContext, policy: string) {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-audit-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const policyFile = join(folder, 'policy.yaml');
  const log = join(folder, 'audit.log');
  await writeFile(policyFile, `apiVersion: audit.k8s.io/v1\nkind: Policy\n${policy}`);
  const credentials = await loadCredentials(folder, '127.0.0.1', systemClock.now());
  const plane = await createControlPlane({
    authenticateToken: tokenUsers(parseTokenFile(`${token},ann,1,system:masters\n${token}2,bob,2,dev\n`, 'x')),
    audit: { policyFile, log: { path: log } },
  });
  t.teardown(() => plane.close());
  const { url } = await plane.listen({ credentials });
  const call = (method: string, path: string, body?: unknown, bearer = token, headers: Record<string, string> = {}) =>
    new Promise<number>((resolve, reject) => {
      const sent = body === undefined ? {} : { 'content-type': 'application/json' };
      const outgoing = request(
        url + path,
        { method, ca: credentials.authority, headers: { authorization: `Bearer ${bearer}`, ...sent, ...headers } },
        (incoming) => incoming.resume().on('end', () => resolve(incoming.statusCode ?? 0)),
      );
      outgoing.on('error', reject);
      outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    });
  const events = async () => {
    await plane.close();
    const text = await readFile(log, 'utf8');
    return {
      text,
      events: text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as AuditEvent),
    };
  };
  return { log, call, events };
}

const configMap = (name: object, data = { k: 'v' }) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: name, data });
const configMaps = '/api/v1/namespaces/default/configmaps';

test('the audit log identifies who deleted a ConfigMap, and contains neither Secrets nor tokens', async (t) => {
  const { log, call, events } = await served(t, 'rules: [{level: RequestResponse, omitStages: [RequestReceived]}]');
  t.is(await call('POST', configMaps, configMap({ generateName: 'gen-' })), 201);
  t.is(await call('POST', configMaps, configMap({ name: 'settings' })), 201);
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, data: { key: canary } };
  t.is(await call('POST', '/api/v1/namespaces/default/secrets', secret), 201);
  t.is(await call('PUT', '/api/v1/namespaces/default/secrets/s', { ...secret, type: 'Other' }), 422);
  t.is(await call('GET', '/api/v1/secrets'), 200);
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } };
  t.is(await call('POST', '/apis/authentication.k8s.io/v1/tokenreviews', review), 201);
  t.is(await call('GET', `${configMaps}/settings`, undefined, `${token}2`), 403);
  t.is(await call('GET', configMaps, undefined, 'canary-wrong-1717'), 401);
  t.is(
    await call('DELETE', `${configMaps}/settings`, undefined, token, {
      'impersonate-user': 'carol',
      'impersonate-group': 'system:masters',
    }),
    200,
  );
  const { text, events: found } = await events();
  for (const word of [canary, token, 'canary-wrong']) t.false(text.includes(word), word);
  const [generated, , created, invalid, listed, reviewed, forbidden, rejected, deleted] = found;
  t.is(found.length, 9);
  t.is(new Set(found.map(({ auditID }) => auditID)).size, 9, 'one event per request');
  t.regex(generated?.objectRef?.['name'] ?? '', /^gen-/);
  t.is(generated?.objectRef?.['name'], generated?.responseObject?.metadata.name);
  t.truthy(generated?.objectRef?.['uid']);
  t.deepEqual(generated?.requestObject?.data, { k: 'v' });
  t.deepEqual([created?.level, created?.objectRef?.['name']], ['Metadata', 's']);
  t.is(invalid?.responseStatus?.reason, 'Invalid');
  t.is(listed?.level, 'Metadata');
  t.is(reviewed?.level, 'Metadata');
  t.is(forbidden?.annotations?.['authorization.k8s.io/decision'], 'forbid');
  t.deepEqual([rejected?.user, rejected?.stage, rejected?.responseStatus?.code], [{}, 'ResponseStarted', 401]);
  t.deepEqual(
    [deleted?.user.username, deleted?.impersonatedUser?.username, deleted?.objectRef?.['name']],
    ['ann', 'carol', 'settings'],
  );

  let printed = '';
  const io = {
    env: {},
    stdout: (out: string) => (printed += out),
    stderr: t.log,
    terminated: new Promise<void>(() => {}),
  };
  const words = [
    'audit',
    '--file',
    log,
    '--verb',
    'delete',
    '--resource',
    'configmaps',
    '-n',
    'default',
    '--name',
    'settings',
  ];
  t.is(await main(words, io), 0);
  t.regex(
    printed,
    /^TIME +USER +VERB +RESOURCE +NAMESPACE +NAME +CODE +SOURCE\n.* ann as carol +delete +configmaps +default +settings +200 +127\.0\.0\.1\n$/,
  );
  printed = '';
  t.is(await main(['audit', '--file', log, '--user', 'nobody'], io), 1);
  t.is(printed, 'no request matches\n');
});

test('every request has its events when the server stops, also with many requests; a watch has its start and end', async (t) => {
  const { call, events } = await served(t, 'rules: [{level: Metadata}]');
  await Promise.all(Array.from({ length: 300 }, () => call('GET', configMaps)));
  t.is(await call('GET', `${configMaps}?watch=true&timeoutSeconds=1`), 200);
  const { events: found } = await events();
  const stages = (stage: string) => found.filter((event) => event.stage === stage).length;
  t.is(stages('RequestReceived'), 301);
  t.is(stages('ResponseComplete'), 301);
  t.is(stages('ResponseStarted'), 1);
});

test('options of the audit that would record nothing are refused', async (t) => {
  const refused = async (words: string[], message: RegExp) => {
    const options = await loadOptions(words, {});
    t.throws(() => auditOptions(options), { name: 'UsageError', message });
  };
  await refused(['--audit-log-path', 'x'], /^--audit-log-path requires --audit-policy-file/);
  await refused(['--audit-webhook-config-file', 'x'], /^--audit-webhook-config-file requires --audit-policy-file/);
  await t.throwsAsync(createControlPlane({ audit: { policyFile: '/nonexistent' } }), {
    name: 'UsageError',
    message: /^audit.policyFile \/nonexistent cannot be read/,
  });
});
