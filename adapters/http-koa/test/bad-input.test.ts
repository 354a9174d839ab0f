import { silentLogger } from '@keelson/core/runtime';
import test from 'ava';
import fc from 'fast-check';
import { serveReal } from './support/real-plane.ts';
import { call, raw } from './support/serve.ts';

const word = fc.constantFrom(
  'api',
  'apis',
  'v1',
  'apps',
  'extensions',
  'v1beta1',
  'watch',
  'proxy',
  'namespaces',
  'default',
  'configmaps',
  'deployments',
  'secrets',
  'pods',
  'a',
  'status',
  'scale',
  'finalize',
  'binding',
  'rollback',
  '',
  '..',
  '%2e%2e',
  '%2f',
  '%00',
  '%zz',
  '__proto__',
  'constructor',
  'openapi',
  'v3',
  'healthz',
  'version',
  'é',
  'x'.repeat(300),
);
const value = fc.constantFrom(
  '',
  '0',
  '1',
  'true',
  'false',
  '-1',
  '99999999999999999999',
  'x',
  '%zz',
  '%00',
  'All',
  'Strict',
  'Exact',
  'NotOlderThan',
  'a%3Db',
  'a+in+(b',
  '!',
  'metadata.name%3Da',
  'metadata.name=a,metadata.name=b',
  '%5C',
  '30s',
  'Foreground',
  '__proto__',
  'é',
  'y'.repeat(500),
);
const parameter = fc.constantFrom(
  'watch',
  'limit',
  'continue',
  'resourceVersion',
  'resourceVersionMatch',
  'labelSelector',
  'fieldSelector',
  'timeoutSeconds',
  'timeout',
  'pretty',
  'dryRun',
  'fieldManager',
  'fieldValidation',
  'force',
  'export',
  'exact',
  'includeObject',
  'sendInitialEvents',
  'allowWatchBookmarks',
  'gracePeriodSeconds',
  'orphanDependents',
  'propagationPolicy',
  'uid',
  'hash',
  'verbose',
  'exclude',
  '__proto__',
);
const mediaType = fc.constantFrom(
  'application/json',
  'application/yaml',
  'application/json;as=Table;g=meta.k8s.io;v=v1',
  'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
  'application/merge-patch+json',
  'application/json-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
  'application/vnd.kubernetes.protobuf',
  '*/*;q=x',
  ';;;=,,',
  'text/plain',
  '"',
);
const nested = (open: string, close: string) => open.repeat(5000) + close.repeat(5000);
const object = fc
  .record(
    {
      kind: fc.constantFrom('ConfigMap', 'Deployment', 'DeleteOptions', 'Namespace', '', 7, null),
      apiVersion: fc.constantFrom('v1', 'apps/v1', 'a/b/c', 3),
      metadata: fc.oneof(
        fc.record(
          { name: fc.constantFrom('a', 'b', '..', 'A', 'x'.repeat(300), 5), labels: fc.jsonValue() },
          { requiredKeys: [] },
        ),
        fc.jsonValue(),
      ),
      data: fc.jsonValue(),
      spec: fc.jsonValue(),
      __proto__: fc.jsonValue(),
    },
    { requiredKeys: [] },
  )
  .map((o) => JSON.stringify(o));
const body = fc.oneof(
  object,
  fc.json(),
  fc.string(),
  fc.constantFrom(
    '',
    '{',
    '[]',
    'null',
    nested('[', ']'),
    nested('{"a":', '}'),
    '{"__proto__":{"x":1},"metadata":{"name":"p"}}',
    'a: &a [*a]',
    `a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nd: [*c,*c]\n${'e: [*d,*d]\n'.repeat(200)}`,
    '[{"op":"copy","from":"","path":"/data"}]',
    '[{"op":"add","path":"/metadata/name/x/y","value":1},{"op":7}]',
    '{"$patch":"unknown","metadata":{"$patch":"delete"}}',
    '{"metadata":{"finalizers":["x","y"],"$setElementOrder/finalizers":7}}',
    '\u0000\u0001',
    'k8s\u0000\u000a\u0002',
  ),
);

/** Request targets in absolute form, as for a proxy. */
const authority = fc.constantFrom(
  ...[
    '',
    '',
    '',
    '',
    'http://localhost',
    'HTTP://[::1]:80',
    'http://[bad',
    'https://a:99999',
    'http://',
    'http://a@b:c',
    'ftp://x',
  ],
);
const header = fc.tuple(
  fc.constantFrom(
    ...[
      'Impersonate-User',
      'Impersonate-Group',
      'Impersonate-Uid',
      'Impersonate-Foo',
      'Impersonate-Extra-%zz',
      'Impersonate-Extra-',
    ],
    ...[
      'Impersonate-',
      'Audit-Id',
      'If-None-Match',
      'Accept-Encoding',
      'Range',
      'Authorization',
      'User-Agent',
      'X-HTTP-Method-Override',
    ],
    ...[
      'Upgrade',
      'Connection',
      'Cookie',
      'Origin',
      'Sec-Fetch-Site',
      'Content-Encoding',
      'Accept-Charset',
      'TE',
      'Via',
    ],
  ),
  fc.constantFrom(
    '',
    ' ',
    'a',
    'Bearer',
    'gzip;q=x',
    'websocket',
    'upgrade',
    '*',
    '"',
    'system:serviceaccount::',
    '\u00ff',
    ',,,',
  ),
);

for (const viaKoa of [false, true])
  test(`a request with another protocol version is answered with 505 and its connection closed${viaKoa ? ', through Koa' : ''}`, async (t) => {
    const logged: string[] = [];
    const record = (message: string) => void logged.push(message);
    const logger = { ...silentLogger, error: record, child: () => logger };
    const { api, server, port } = await serveReal(t, { viaKoa, logger });
    if (!viaKoa) api.acceptUpgrades(server);
    const maps = '/api/v1/namespaces/default/configmaps';
    for (const version of ['0.9', '2.0'])
      for (const target of [
        `GET ${maps}`,
        `DELETE ${maps}/a`,
        `GET ${maps}?watch=true`,
        'GET /version',
        'POST /nothing',
      ])
        for (const more of ['', 'Connection: Upgrade\r\nUpgrade: test/1\r\n', 'Connection: keep-alive\r\n']) {
          const answer = await raw(port, `${target} HTTP/${version}\r\nHost: localhost\r\n${more}\r\n`);
          t.regex(answer, /^HTTP\/1\.1 505 HTTP Version Not Supported\r\n/, `${target} ${version} ${more}`);
          t.true(answer.includes(`"message":"unsupported protocol version HTTP/${version}"`), answer);
        }
    t.deepEqual(logged, []);
  });

test('arbitrary input never causes a server error, and the server continues to serve requests', async (t) => {
  const { port } = await serveReal(t);
  await call(port, 'POST', '/api/v1/namespaces/default/configmaps', {
    body: '{"metadata":{"name":"a"},"data":{"k":"v"}}',
  });
  const known = fc.constantFrom(
    '/api/v1/namespaces/default/configmaps/a',
    '/api/v1/namespaces/default/configmaps',
    '/api/v1/namespaces/default',
    '/apis/apps/v1/namespaces/default/deployments',
    '/apis/apps/v1/namespaces/default/deployments/a/scale',
    '/apis/extensions/v1beta1/namespaces/default/deployments/a/rollback',
  );
  const path = fc.oneof(
    known,
    fc.array(word, { maxLength: 9 }).map((segments) => `/${segments.join('/')}`),
  );
  const query = fc
    .array(fc.tuple(parameter, value), { maxLength: 4 })
    // Watches must end by themselves for the response to be complete.
    .map((pairs) => ['timeoutSeconds=1', ...pairs.map(([k, v]) => `${k}=${v}`)].join('&'));
  const statuses = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('GET', 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PURGE'),
      path,
      query,
      mediaType,
      mediaType,
      body,
      fc.tuple(authority, fc.array(header, { maxLength: 2 })),
      async (method, where, parameters, accept, contentType, content, [server, more]) => {
        const bytes = Buffer.from(content);
        const headers = [
          ['Host', 'localhost'],
          ['Accept', accept],
          ['Content-Type', contentType],
          ['Connection', 'close'],
          ['Content-Length', String(bytes.length)],
          ...more,
        ];
        const lines = headers.map(([name, text]) => `${name}: ${text}\r\n`).join('');
        const head = `${method} ${server}${where}?${parameters} HTTP/1.1\r\n${lines}\r\n`;
        // The head of a response is sufficient; a watch may send nothing more.
        const answer = await raw(port, Buffer.concat([Buffer.from(head, 'latin1'), bytes]), (text) =>
          text.includes('\r\n\r\n'),
        );
        const status = Number(/^HTTP\/1.1 (\d{3}) /.exec(answer)?.[1]);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        t.true(status >= 200 && status < 500, `${head}${content.slice(0, 200)}\n-> ${answer.slice(0, 2000)}`);
        // Requests that the parser of Node rejects have no Audit-Id.
        if (/\r\nAudit-Id: /i.test(answer) && method !== 'HEAD' && status !== 304)
          t.regex(answer, /\r\nContent-Type: /i);
      },
    ),
    { numRuns: 800, endOnFailure: true },
  );
  t.true(statuses.size > 4, `saw ${[...statuses].map(([code, count]) => `${code}:${count}`).join(' ')}`);
  t.is((await call(port, 'GET', '/readyz')).status, 200);
  t.is(({} as Record<string, unknown>)['x'], undefined);
});
