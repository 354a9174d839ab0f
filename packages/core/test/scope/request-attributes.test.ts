import test from 'ava';
import fc from 'fast-check';
import { parseRequestAttributes, type RequestAttributes } from '../../src/scope/request-attributes.ts';

type Expected = Partial<RequestAttributes>;

const resourceCases: [method: string, target: string, expected: Expected][] = [
  ['GET', '/api/v1/namespaces', { verb: 'list', apiVersion: 'v1', resource: 'namespaces', namespace: '' }],
  ['GET', '/api/v1/namespaces/a', { verb: 'get', resource: 'namespaces', namespace: 'a', name: 'a', named: true }],
  [
    'PUT',
    '/api/v1/namespaces/a/finalize',
    { verb: 'update', resource: 'namespaces', namespace: 'a', name: 'a', subresource: 'finalize' },
  ],
  ['GET', '/api/v1/namespaces/a/status', { verb: 'get', resource: 'namespaces', name: 'a', subresource: 'status' }],
  [
    'GET',
    '/api/v1/namespaces/a/status/x',
    { verb: 'get', resource: 'status', namespace: 'a', name: 'x', subresource: '' },
  ],
  ['GET', '/api/v1/namespaces/a/pods', { verb: 'list', resource: 'pods', namespace: 'a', name: '' }],
  ['HEAD', '/api/v1/namespaces/a/pods/p', { verb: 'get', resource: 'pods', namespace: 'a', name: 'p' }],
  ['HEAD', '/api/v1/pods', { verb: 'list', resource: 'pods' }],
  ['POST', '/api/v1/namespaces/a/pods/p/binding', { verb: 'create', name: 'p', subresource: 'binding' }],
  [
    'PATCH',
    '/apis/apps/v1/namespaces/a/deployments/d',
    { verb: 'patch', apiGroup: 'apps', apiVersion: 'v1', resource: 'deployments' },
  ],
  ['DELETE', '/apis/apps/v1/namespaces/a/deployments/d', { verb: 'delete', name: 'd' }],
  ['DELETE', '/apis/apps/v1/namespaces/a/deployments', { verb: 'deletecollection', name: '' }],
  [
    'DELETE',
    '/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dx',
    { verb: 'deletecollection', name: '', named: false, fieldSelector: 'metadata.name=x' },
  ],
  ['OPTIONS', '/api/v1/pods', { verb: 'options', resource: 'pods' }],
  ['GET', '/api/v1/pods?watch', { verb: 'watch' }],
  ['GET', '/api/v1/pods?watch=', { verb: 'watch' }],
  ['GET', '/api/v1/pods?watch=True', { verb: 'watch' }],
  ['GET', '/api/v1/pods?watch=no', { verb: 'watch' }],
  ['GET', '/api/v1/pods?watch=0', { verb: 'list' }],
  ['GET', '/api/v1/pods?watch=FALSE', { verb: 'list' }],
  ['GET', '/api/v1/pods?watch=0&watch=1', { verb: 'list' }],
  ['GET', '/api/v1/pods?%77atch=1', { verb: 'watch' }],
  ['GET', '/api/v1/namespaces/a/pods/p?watch=1', { verb: 'get', name: 'p' }],
  ['DELETE', '/api/v1/namespaces/a/pods?watch=1', { verb: 'deletecollection' }],
  ['GET', '/api/v1/watch/pods', { verb: 'watch', resource: 'pods', watchPath: true, named: false }],
  ['GET', '/api/v1/watch/namespaces', { verb: 'watch', resource: 'namespaces', namespace: '' }],
  [
    'GET',
    '/api/v1/watch/namespaces/a',
    { verb: 'watch', resource: 'namespaces', namespace: 'a', name: 'a', named: true },
  ],
  [
    'GET',
    '/apis/apps/v1/watch/namespaces/a/deployments/d',
    { verb: 'watch', apiGroup: 'apps', namespace: 'a', name: 'd', named: true },
  ],
  ['DELETE', '/api/v1/watch/namespaces/a/pods', { verb: 'deletecollection', watchPath: true }],
  ['GET', '/api/v1/watch', { verb: 'list', resource: 'watch', watchPath: false }],
  [
    'GET',
    '/api/v1/proxy/namespaces/a/pods/p/x/y',
    { verb: 'proxy', resource: 'pods', name: 'p', subresource: 'x', remainder: ['y'] },
  ],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name=p', { verb: 'list', name: 'p', named: false }],
  ['GET', '/api/v1/pods?fieldSelector=spec.nodeName%3Dn,metadata.name%3D%3Dp&watch=1', { verb: 'watch', name: 'p' }],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name!=p', { name: '' }],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name=..', { name: '' }],
  ['GET', '/api/v1/pods?fieldSelector=metadata.name=a%2Fb', { name: '' }],
  ['GET', '/api/v1/pods?fieldSelector=a%3Db%5C,metadata.name%3Dp', { name: '' }],
  ['GET', 'http://host:1/api/v1/pods?watch=1', { verb: 'watch', resource: 'pods', path: '/api/v1/pods' }],
  ['GET', '/api/v1/namespaces/a/configmaps/%C3%A9', { name: 'é' }],
  ['GET', '/api/v1/namespaces/a/pods/p/log/x/y', { subresource: 'log', remainder: ['x', 'y'] }],
  ['GET', '/api/v1/namespaces/', { verb: 'list', resource: 'namespaces', namespace: '', named: false }],
  ['GET', '/api/v1/namespaces/a/', { verb: 'get', resource: 'namespaces', name: 'a', namespace: 'a' }],
  ['GET', '/api/v1/namespaces/a/pods/', { verb: 'list', resource: 'pods', namespace: 'a', remainder: [] }],
  ['GET', '/api/v1/namespaces/a/pods/p//', { verb: 'get', name: 'p', subresource: '', remainder: [] }],
  ['DELETE', '/api/v1/namespaces/a/pods/p/', { verb: 'delete', name: 'p' }],
  ['GET', '/apis/__proto__/v1/constructor', { apiGroup: '__proto__', resource: 'constructor' }],
];

for (const [method, target, expected] of resourceCases) {
  test(`${method} ${target} is a resource request`, (t) => {
    const attributes = parseRequestAttributes(method, target);
    t.true(attributes.isResourceRequest);
    t.is(attributes.problem, undefined);
    t.like(attributes, expected);
  });
}

const otherPaths = [
  '/',
  '/api',
  '/api/',
  '/apis',
  '/apis/',
  '/api/v1',
  '/api/v1/',
  '/apis/apps',
  '/apis/apps/',
  '/apis/apps/v1',
  '/apis/apps/v1/',
  '/version',
  '/version/',
  '/healthz/ping',
  '/openapi/v3/apis/apps/v1',
  '//',
  '/api//v1/pods',
  '/api/v1//pods',
  '/apiv1/pods',
  '/api/v1/namespaces//pods',
  '/API/v1/pods',
];

for (const target of otherPaths) {
  test(`${target} is not a resource request`, (t) => {
    const attributes = parseRequestAttributes('GET', target);
    t.false(attributes.isResourceRequest);
    t.is(attributes.problem, undefined);
    t.is(attributes.verb, 'get');
    t.is(attributes.resource, '');
  });
}

test('the path after a proxy subresource is kept unchanged, with empty segments and trailing slashes', (t) => {
  const remainders = ['proxy/', 'proxy//', 'proxy/a//b/'].map((tail) => {
    const { isResourceRequest, subresource, name, remainder } = parseRequestAttributes(
      'GET',
      `/api/v1/nodes/https:n:1/${tail}`,
    );
    t.deepEqual([isResourceRequest, subresource, name], [true, 'proxy', 'https:n:1']);
    return remainder;
  });
  t.deepEqual(remainders, [[''], ['', ''], ['a', '', 'b', '']]);
  t.false(parseRequestAttributes('GET', '/api/v1/nodes/n//proxy').isResourceRequest);
});

test('the deletion of a collection has no trailing slash, because the name may have been empty by mistake', (t) => {
  t.false(parseRequestAttributes('DELETE', '/api/v1/namespaces/a/pods/').isResourceRequest);
});

const impossibleTargets = [
  '/api/v1/namespaces/a/pods/%zz',
  '/api/v1/namespaces/a/pods/%',
  '/api/v1/namespaces/a/pods/%ff',
  '/api/v1/namespaces/a%2fb/pods',
  '/api/v1/namespaces/a/pods/x%2F..%2F..%2Fsecrets',
  '/api/v1/namespaces/../secrets',
  '/api/v1/namespaces/%2e%2e/secrets',
  '/api/v1/./pods',
  '/api/v1/namespaces/a/pods/%00',
  '/api/v1/namespaces/a/pods/x%0Ay',
  '*',
  '',
  'pods',
  'ftp://x/api/v1/pods',
];

for (const target of impossibleTargets) {
  test(`${JSON.stringify(target)} is rejected as a request target`, (t) => {
    const attributes = parseRequestAttributes('GET', target);
    t.is(typeof attributes.problem, 'string');
    t.false(attributes.isResourceRequest);
  });
}

const word = fc.stringMatching(/^[a-z][a-z0-9.-]{0,12}$/).filter((s) => s !== '..' && s !== '.');
const path = fc
  .record({
    group: fc.option(word, { nil: undefined }),
    version: word,
    namespace: fc.option(word, { nil: undefined }),
    resource: word.filter((s) => !['watch', 'proxy', 'namespaces', 'status', 'finalize'].includes(s)),
    name: fc.option(word, { nil: undefined }),
    watch: fc.boolean(),
  })
  .map((p) => [
    ...(p.group === undefined ? ['api'] : ['apis', p.group]),
    p.version,
    ...(p.watch ? ['watch'] : []),
    ...(p.namespace === undefined ? [] : ['namespaces', p.namespace]),
    p.resource,
    ...(p.name === undefined ? [] : [p.name]),
  ]);

const decisions = (a: RequestAttributes) => [
  a.verb,
  a.apiGroup,
  a.apiVersion,
  a.namespace,
  a.resource,
  a.subresource,
  a.name,
  a.watchPath,
];

test('every encoding of the same path is decided alike', (t) => {
  fc.assert(
    fc.property(
      path,
      fc.infiniteStream(fc.nat(2)),
      fc.constantFrom('GET', 'PUT', 'DELETE', 'PATCH'),
      (segments, choices, method) => {
        const encode = (text: string) =>
          [...text]
            .map((c) => {
              const hex = c.charCodeAt(0).toString(16).padStart(2, '0');
              return [c, `%${hex}`, `%${hex.toUpperCase()}`][choices.next().value as number];
            })
            .join('');
        const plain = parseRequestAttributes(method, `/${segments.join('/')}`);
        const encoded = parseRequestAttributes(method, `/${segments.map(encode).join('/')}`);
        t.deepEqual(decisions(encoded), decisions(plain));
        t.true(plain.isResourceRequest);
      },
    ),
  );
});

test('no target makes the parser throw, and no name reaches another place in the hierarchy', (t) => {
  const nasty = fc.constantFrom(
    '/',
    '//',
    '%2f',
    '%2F',
    '..',
    '%2e',
    '%',
    '%zz',
    '%00',
    '?',
    '&',
    '=',
    'watch',
    'namespaces',
    'api',
    'apis',
    'v1',
    '#',
    '\\',
  );
  const target = fc
    .array(fc.oneof(nasty, fc.string({ unit: 'binary', maxLength: 6 })), { maxLength: 14 })
    .map((p) => `/${p.join('')}`);
  fc.assert(
    fc.property(fc.oneof(target, fc.string()), fc.constantFrom('GET', 'POST', 'X'), (text, method) => {
      const a = parseRequestAttributes(method, text);
      for (const part of [a.apiGroup, a.apiVersion, a.namespace, a.resource, a.subresource]) {
        t.false(part.includes('/') || part === '.' || part === '..' || part.includes('\0'));
      }
      if (a.named) t.false(a.name.includes('/') || a.name === '..');
      if (a.problem !== undefined) t.false(a.isResourceRequest);
    }),
    { numRuns: 500 },
  );
});

test('query parameters: the first of a repeated one counts, undecodable pairs are left out', (t) => {
  const { query } = parseRequestAttributes('GET', '/x?a=1&a=2&b=%zz&c=x+y%2Bz&d&=e&__proto__=p');
  t.is(query.first('a'), '1');
  t.deepEqual(query.all('a'), ['1', '2']);
  t.false(query.has('b'));
  t.is(query.first('c'), 'x y+z');
  t.is(query.first('d'), '');
  t.is(query.first('__proto__'), 'p');
  t.is(query.first('constructor'), undefined);
  t.is(query.boolean('d'), true);
  t.is(query.boolean('z'), undefined);
});
