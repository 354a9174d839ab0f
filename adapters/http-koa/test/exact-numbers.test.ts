import { defineKind, optional, s } from '@keelson/core';
import test from 'ava';
import { serveReal } from './support/real-plane.ts';
import { call } from './support/serve.ts';

const Gauge = defineKind({
  group: 'toys.example.com',
  version: 'v1',
  kind: 'Gauge',
  schema: s.object({ spec: optional(s.object({ level: optional(s.int64()), open: optional(s.any()) })) }),
});
const gauges = '/apis/toys.example.com/v1/namespaces/default/gauges';
const json = { 'content-type': 'application/json' };
const gauge = (spec: string) =>
  `{"apiVersion":"toys.example.com/v1","kind":"Gauge","metadata":{"name":"g"},"spec":${spec}}`;

test('integers of 64 bits survive writes and reads in JSON, YAML and patches', async (t) => {
  const { port, registry } = await serveReal(t);
  registry.add(Gauge);
  const spec = async () => (await call(port, 'GET', `${gauges}/g`)).text.replace(/^.*"spec":/, '').trim();

  const created = await call(port, 'POST', gauges, {
    headers: json,
    body: gauge('{"level":9223372036854775807,"open":[9007199254740993,{"x":-9223372036854775808}]}'),
  });
  t.is(created.status, 201, created.text);
  const stored = '{"level":9223372036854775807,"open":[9007199254740993,{"x":-9223372036854775808}]}}';
  t.is(await spec(), stored);

  const yaml = await call(port, 'GET', `${gauges}/g`, { headers: { accept: 'application/yaml' } });
  t.regex(yaml.text, /level: 9223372036854775807\n/);
  t.regex(yaml.text, /- 9007199254740993\n/);
  t.is(
    (await call(port, 'PUT', `${gauges}/g`, { headers: { 'content-type': 'application/yaml' }, body: yaml.text }))
      .status,
    200,
  );
  t.is(await spec(), stored);
  t.regex((await call(port, 'GET', `${gauges}/g?pretty=true`)).text, /"level": 9223372036854775807,\n/);

  for (const [type, body] of [
    ['merge', '{"metadata":{"labels":{"a":"b"}}}'],
    ['strategic-merge', '{"metadata":{"labels":{"a":"c"}}}'],
    [
      'json',
      '[{"op":"test","path":"/spec/open/0","value":9007199254740993},{"op":"copy","from":"/spec/open/0","path":"/spec/open/1/y"}]',
    ],
  ] as const) {
    const contentType = `application/${type === 'json' ? 'json-patch' : `${type}-patch`}+json`;
    const reply = await call(port, 'PATCH', `${gauges}/g`, { headers: { 'content-type': contentType }, body });
    t.is(reply.status, 200, reply.text);
  }
  t.is(await spec(), stored.replace('808}', '808,"y":9007199254740993}'));
});

test('numbers that cannot be represented exactly are a 400 that names their position', async (t) => {
  const { port, registry } = await serveReal(t);
  registry.add(Gauge);
  for (const literal of ['12345678901234567890', '1e400', '9223372036854775808']) {
    const reply = await call(port, 'POST', gauges, { headers: json, body: gauge(`{"open":{"x":${literal}}}`) });
    t.is(reply.status, 400, reply.text);
    t.regex(
      String(reply.json['message']),
      /(does not fit into 64 bits|too large for 64-bit floating point) \(line 1, column \d+\)/,
    );
    const patch = await call(port, 'PATCH', `${gauges}/g`, {
      headers: { 'content-type': 'application/merge-patch+json' },
      body: `{"spec":{"open":${literal}}}`,
    });
    t.is(patch.status, 400);
  }
});

test('a pod accepts the greatest grace period in protobuf and JSON, and can be deleted', async (t) => {
  const { port } = await serveReal(t);
  const pods = '/api/v1/namespaces/default/pods';
  const protobuf = 'application/vnd.kubernetes.protobuf';
  const spec =
    '{"terminationGracePeriodSeconds":9223372036854775807,"nodeName":"n","containers":[{"name":"c","image":"i"}]}';
  const body = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":${spec}}`;
  const created = await call(port, 'POST', pods, { headers: { ...json, accept: protobuf }, body });
  t.is(created.status, 201, created.text);
  const put = await call(port, 'PUT', `${pods}/p`, { headers: { 'content-type': protobuf }, body: created.body });
  t.is(put.status, 200, put.text);
  t.regex(put.text, /"terminationGracePeriodSeconds":9223372036854775807[,}]/);
  const deleted = await call(port, 'DELETE', `${pods}/p`);
  t.is(deleted.status, 200, deleted.text);
  t.regex(deleted.text, /"deletionTimestamp":"9999-12-31T23:59:5\dZ"/);
  t.is((await call(port, 'DELETE', `${pods}/p?gracePeriodSeconds=0`)).status, 200);
});
