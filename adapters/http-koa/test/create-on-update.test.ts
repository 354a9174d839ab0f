import test from 'ava';
import { serveReal } from './support/real-plane.ts';
import { call } from './support/serve.ts';

const core = '/api/v1/namespaces/default';
const involvedObject = { kind: 'Pod', namespace: 'default', name: 'p' };

/** Every kind that a PUT creates when it is missing, with a body. */
const creatable: readonly (readonly [path: string, group: string, resource: string, body: object])[] = [
  [`${core}/endpoints/a`, '', 'endpoints', {}],
  [`${core}/events/a`, '', 'events', { involvedObject }],
  [`${core}/services/a`, '', 'services', { spec: { ports: [{ port: 80 }] } }],
  [
    '/apis/events.k8s.io/v1/namespaces/default/events/a',
    'events.k8s.io',
    'events',
    {
      regarding: involvedObject,
      eventTime: '2026-01-02T12:00:00.000000Z',
      reportingController: 'example.com/c',
      reportingInstance: 'one',
      action: 'Starting',
      reason: 'Started',
      type: 'Normal',
    },
  ],
  ['/apis/coordination.k8s.io/v1/namespaces/default/leases/a', 'coordination.k8s.io', 'leases', {}],
];

for (const [path, group, resource, body] of creatable) {
  const qualified = group === '' ? resource : `${resource}.${group}`;
  test(`a PUT that would create ${qualified} requires the permission to create them, in a dry run as well`, async (t) => {
    const verbs = new Set(['update', 'get']);
    const { port } = await serveReal(t, {
      authenticate: ({ headers }) =>
        headers.authorization ? { name: 'jane', groups: [] } : { name: 'root', groups: ['system:masters'] },
      authorize: ({ verb }, { name }) =>
        name === 'root' || (verbs.has(verb) ? true : { allowed: false, reason: 'by rule' }),
    });
    const headers = { authorization: 'jane' };
    const put = (query = '') =>
      call(port, 'PUT', `${path}${query}`, { headers, body: JSON.stringify({ metadata: { name: 'a' }, ...body }) });
    for (const query of ['', '?dryRun=All']) {
      const refused = await put(query);
      t.is(refused.status, 403);
      t.is(
        refused.json.message,
        `${qualified} "a" is forbidden: User "jane" cannot create resource "${resource}" in API group "${group}" in the namespace "default": by rule`,
      );
    }
    t.is((await call(port, 'GET', path, { headers })).status, 404, 'nothing was stored');
    verbs.add('create');
    t.is((await put()).status, 201);
  });
}

test('a PUT of an existing object requires only the permission to update it', async (t) => {
  const { port } = await serveReal(t, {
    authenticate: ({ headers }) =>
      headers.authorization ? { name: 'jane', groups: [] } : { name: 'root', groups: ['system:masters'] },
    authorize: ({ verb }, { name }) => name === 'root' || verb === 'update',
  });
  const created = await call(port, 'POST', `${core}/services`, {
    body: '{"metadata":{"name":"a"},"spec":{"ports":[{"port":80}]}}',
  });
  const changed = { ...created.json, metadata: { ...created.json.metadata, labels: { a: 'b' } } };
  const answer = await call(port, 'PUT', `${core}/services/a`, {
    headers: { authorization: 'jane' },
    body: JSON.stringify(changed),
  });
  t.is(answer.status, 200);
});
