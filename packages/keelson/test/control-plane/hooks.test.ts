import type { AnyController } from '@keelson/controller-kit';
import { type AdmissionPlugin, defineKind, s } from '@keelson/core';
import { type LogFields, silentLogger } from '@keelson/core/runtime';
import { ConfigMap } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { type ControlPlaneOptions, createControlPlane } from '../../src/index.ts';

// Hooks of programs in JavaScript, which types do not protect.

const schema = s.object({ spec: s.object({ size: s.int32() }) });
const names = { group: 'hooks.test', version: 'v1' } as const;
const wrong = (hook: unknown) => hook as never;

async function started(t: ExecutionContext, options: ControlPlaneOptions) {
  const logged: string[] = [];
  const logger = {
    ...silentLogger,
    child: () => logger,
    error: (message: string, fields?: LogFields) => logged.push(`${message} ${String(fields?.['err'])}`),
    warn: (message: string, fields?: LogFields) => logged.push(`${message} ${String(fields?.['err'])}`),
  };
  const plane = await createControlPlane({ controllers: false, ...options, logger });
  t.teardown(() => plane.close());
  return { plane, server: await plane.listen(), logged };
}

async function create(url: string, path: string, body: object) {
  const headers = { 'Content-Type': 'application/json' };
  const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const status = (await response.json()) as { readonly message?: string };
  return `${response.status} ${status.message}`;
}

test('a hook of a kind with a wrong result is a 500 that names hook and kind; nothing is stored', async (t) => {
  const slow = defineKind({ ...names, kind: 'Slow', schema, strategy: { validate: wrong(async () => []) } });
  const late = defineKind({ ...names, kind: 'Late', schema, strategy: { prepareForCreate: wrong(async () => {}) } });
  const text = defineKind({ ...names, kind: 'Text', schema, strategy: { validateCreate: wrong(() => 'too small') } });
  const { plane, server, logged } = await started(t, { kinds: [slow, late, text] });
  const base = '/apis/hooks.test/v1/namespaces/default/';
  const object = { metadata: { name: 'a' }, spec: { size: 1 } };
  t.regex(await create(server.url, `${base}slows`, object), /^500 .*the hook validate of Slow returned a promise/);
  t.regex(
    await create(server.url, `${base}lates`, object),
    /^500 .*the hook prepareForCreate of Late returned a promise/,
  );
  t.regex(await create(server.url, `${base}texts`, object), /^500 .*the hook validateCreate of Text returned a string/);
  for (const kind of [slow, late, text]) t.deepEqual((await plane.client(kind).list()).items, []);
  t.true(
    logged.some((line) => line.includes('the hook validate of Slow')),
    logged.join(),
  );
});

test('an admission plugin and a virtual kind with a wrong result are a 500 that names them', async (t) => {
  const plugin: AdmissionPlugin = {
    name: 'Chatty',
    resources: ['configmaps'],
    validate: wrong(() => ({ allowed: true })),
  };
  const silent = defineKind({ ...names, kind: 'Silent', schema, virtual: wrong({ create: async () => undefined }) });
  const { server } = await started(t, { admission: [plugin], kinds: [silent] });
  const map = await create(server.url, '/api/v1/namespaces/default/configmaps', { metadata: { name: 'a' } });
  t.regex(map, /^500 .*the admission plugin Chatty returned an object for ConfigMap/);
  const answer = await create(server.url, '/apis/hooks.test/v1/namespaces/default/silents', { spec: { size: 1 } });
  t.regex(answer, /^500 .*the virtual kind Silent answered with undefined/);
});

test('a controller with a wrong result fails its run, and the log names it', async (t) => {
  const controller = { name: 'muddled', kind: ConfigMap, reconcile: async () => ({ again: 5 }) };
  const { plane, logged } = await started(t, { controllers: [controller as unknown as AnyController] });
  await plane
    .client(ConfigMap)
    .namespace('default')
    .create({ metadata: { name: 'a' } });
  t.truthy(
    await until(() => logged.find((line) => line.includes('the controller muddled returned something other than'))),
  );
});
