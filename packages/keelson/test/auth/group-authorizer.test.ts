import { type AccessAttributes, type AccessRules, parseRequestAttributes, type UserInfo } from '@keelson/core';
import test from 'ava';
import fc from 'fast-check';
import { rulesAllow } from '../../src/auth/access-rules.ts';
import { groupAuthorizer } from '../../src/auth/group-authorizer.ts';

const admin: UserInfo = { name: 'admin', groups: ['system:masters'] };
const known: UserInfo = { name: 'jane', groups: ['system:authenticated'] };
const anonymous: UserInfo = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

const may = async (attributes: AccessAttributes, user: UserInfo) => (await groupAuthorizer.authorize(attributes, user)).allowed;

const table: readonly (readonly [method: string, path: string, anonymous: boolean, known: boolean])[] = [
  ['GET', '/healthz', true, true],
  ['HEAD', '/healthz', true, true],
  ['GET', '/readyz/storage', true, true],
  ['GET', '/version', true, true],
  ['GET', '/version/', true, true],
  ['GET', '/healthzz', false, false],
  ['GET', '/', false, true],
  ['GET', '/api', false, true],
  ['GET', '/apis/apps/v1', false, true],
  ['GET', '/openapi/v2', false, true],
  ['GET', '/openapi/v3/api/v1', false, true],
  ['GET', '/metrics', false, false],
  ['POST', '/version', false, false],
  ['GET', '/api/v1/namespaces', false, false],
  ['GET', '/api/v1/namespaces/default/secrets/x', false, false],
  ['DELETE', '/api/v1/namespaces/default', false, false],
  ['POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', false, true],
  ['POST', '/apis/authorization.k8s.io/v1beta1/selfsubjectrulesreviews', false, true],
  ['POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', false, true],
  ['POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', false, false],
  ['POST', '/apis/authentication.k8s.io/v1/tokenreviews', false, false],
];

for (const [method, path, asAnonymous, asKnown] of table) {
  test(`${method} ${path}: anonymous ${asAnonymous ? 'may' : 'may not'}, authenticated ${asKnown ? 'may' : 'may not'}, masters may`, async (t) => {
    const attributes = parseRequestAttributes(method, path);
    t.is(await may(attributes, anonymous), asAnonymous);
    t.is(await may(attributes, known), asKnown);
    t.true(await may(attributes, admin));
  });
}

test('a list of rules allows exactly what is allowed', async (t) => {
  const paths = [
    '',
    '/healthz',
    '/livez/a',
    '/api',
    '/apis/x',
    '/openapi/v3',
    '/metrics',
    '/version',
    '/index.html',
    '/versions',
  ];
  const groups = ['', 'apps', 'authorization.k8s.io', 'authentication.k8s.io'];
  const resources = ['pods', 'selfsubjectaccessreviews', 'selfsubjectreviews', 'tokenreviews', '*'];
  const attributes = fc.record({
    verb: fc.constantFrom('get', 'head', 'create', 'list', '*', 'impersonate'),
    isResourceRequest: fc.boolean(),
    apiGroup: fc.constantFrom(...groups),
    apiVersion: fc.constant('v1'),
    namespace: fc.constantFrom('', 'default'),
    resource: fc.constantFrom(...resources),
    subresource: fc.constantFrom('', 'status'),
    name: fc.constantFrom('', 'a'),
    path: fc.constantFrom(...paths),
  });
  await fc.assert(
    fc.asyncProperty(attributes, fc.constantFrom(admin, known, anonymous), async (asked, user) => {
      const rules = await groupAuthorizer.rulesFor(user, asked.namespace);
      return rulesAllow(rules, asked) === (await may(asked, user));
    }),
    { numRuns: 1000 },
  );
  t.pass();
});

test('rules match groups, resources with their subresources, names and paths', (t) => {
  const rules: AccessRules = {
    resourceRules: [
      { verbs: ['get'], apiGroups: ['apps'], resources: ['deployments', '*/scale'] },
      { verbs: ['update'], apiGroups: [''], resources: ['configmaps'], resourceNames: ['mine'] },
      { verbs: ['get'], apiGroups: [''], resources: ['pods/log'] },
    ],
    nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/logs/*', '/metrics'] }],
    incomplete: false,
  };
  const asked = (method: string, path: string) => rulesAllow(rules, parseRequestAttributes(method, path));
  t.true(asked('GET', '/apis/apps/v1/namespaces/a/deployments/x'));
  t.false(asked('GET', '/apis/apps/v1/namespaces/a/deployments/x/status'));
  t.true(asked('GET', '/apis/apps/v1/namespaces/a/replicasets/x/scale'));
  t.false(asked('GET', '/apis/extensions/v1beta1/namespaces/a/deployments/x'));
  t.true(asked('PUT', '/api/v1/namespaces/a/configmaps/mine'));
  t.false(asked('PUT', '/api/v1/namespaces/a/configmaps/yours'));
  t.true(asked('GET', '/api/v1/namespaces/a/pods/p/log'));
  t.false(asked('GET', '/api/v1/namespaces/a/pods/p'));
  t.true(asked('GET', '/logs/today'));
  t.true(asked('GET', '/metrics'));
  t.false(asked('GET', '/metrics/x'));
});
