import type { AccessAttributes, AccessRules, UserInfo } from '@keelson/core';
import { parseRequestAttributes } from '@keelson/core/internal';
import test from 'ava';
import fc from 'fast-check';
import { bootstrapPolicy } from '../../src/authorization/bootstrap-policy.ts';
import { authorizerChain } from '../../src/authorization/chain.ts';
import { RbacAuthorizer } from '../../src/authorization/rbac-authorizer.ts';
import { keepBinding, RbacIndex } from '../../src/authorization/rbac-index.ts';
import { rulesAllow } from '../../src/authorization/rules.ts';
import { NodeAuthorizer } from '../../src/node/node-authorizer.ts';

const index = new RbacIndex();
for (const { metadata, rules = [] } of bootstrapPolicy.clusterRoles) index.putRole(metadata?.name ?? '', rules);
for (const { metadata, rules = [] } of bootstrapPolicy.roles)
  index.putRole(`${metadata?.namespace}/${metadata?.name}`, rules);
for (const binding of [...bootstrapPolicy.clusterRoleBindings, ...bootstrapPolicy.roleBindings])
  index.addBinding(keepBinding(binding));
/** What `Node,RBAC` allows without any role or binding of users. */
const nodes = new NodeAuthorizer(() => {
  throw new Error('this decision depends on pods; see joined-agent.test.ts');
});
const defaults = authorizerChain([nodes, new RbacAuthorizer(index)]);

const admin: UserInfo = { name: 'admin', groups: ['system:masters'] };
const known: UserInfo = { name: 'jane', groups: ['system:authenticated'] };
const anonymous: UserInfo = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

const node: UserInfo = { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };
const joining: UserInfo = {
  name: 'system:bootstrap:keelson',
  groups: ['system:bootstrappers', 'system:authenticated'],
};

const may = async (attributes: AccessAttributes, user: UserInfo) =>
  (await defaults.authorize(attributes, user)).allowed;

const table: readonly (readonly [method: string, path: string, anonymous: boolean, known: boolean])[] = [
  ['GET', '/healthz', true, true],
  ['HEAD', '/healthz', true, true],
  ['GET', '/readyz/storage', false, false],
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

const certificates = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';

const nodeTable: readonly (readonly [method: string, path: string, joining: boolean, node: boolean])[] = [
  ['POST', certificates, true, true],
  ['GET', certificates, true, true],
  ['GET', `${certificates}?watch=true`, true, true],
  ['GET', `${certificates}/x`, true, true],
  ['PUT', `${certificates}/x`, false, false],
  ['PUT', `${certificates}/x/approval`, false, false],
  ['PATCH', `${certificates}/x/status`, false, false],
  ['DELETE', `${certificates}/x`, false, false],
  ['GET', '/api/v1/nodes/n1', false, true],
  ['POST', '/api/v1/nodes', false, true],
  ['PATCH', '/api/v1/nodes/n1', false, true],
  ['PATCH', '/api/v1/nodes/n1/status', false, true],
  ['PATCH', '/api/v1/nodes/n2', false, false],
  ['PATCH', '/api/v1/nodes/n2/status', false, false],
  ['DELETE', '/api/v1/nodes/n1', false, false],
  ['GET', '/api/v1/nodes', false, false],
  ['POST', leases, false, true],
  ['PUT', `${leases}/n1`, false, true],
  ['PUT', `${leases}/n2`, false, false],
  ['POST', '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases', false, false],
  ['PUT', '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/n1', false, false],
  ['GET', '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1', false, true],
  ['PATCH', '/api/v1/namespaces/a/pods/p/status', false, true],
  ['PATCH', '/api/v1/namespaces/a/pods/p', false, false],
  ['POST', '/api/v1/namespaces/a/pods', false, true],
  ['POST', '/api/v1/namespaces/a/pods/p/binding', false, false],
  ['DELETE', '/api/v1/namespaces/a/pods/p', false, true],
  ['GET', '/api/v1/namespaces/a/secrets', false, false],
  ['GET', '/api/v1/secrets', false, false],
  ['GET', '/api/v1/namespaces/a/services', false, true],
  ['POST', '/api/v1/namespaces/a/events', false, true],
  ['POST', '/apis/authentication.k8s.io/v1/tokenreviews', false, true],
  ['POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', false, true],
  ['POST', '/apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews', false, true],
  ['POST', '/apis/apps/v1/namespaces/a/deployments', false, false],
];

for (const [method, path, asJoining, asNode] of nodeTable) {
  test(`${method} ${path}: a joining user ${asJoining ? 'may' : 'may not'}, the node n1 ${asNode ? 'may' : 'may not'}`, async (t) => {
    const attributes = parseRequestAttributes(method, path);
    t.is(await may(attributes, joining), asJoining);
    t.is(await may(attributes, node), asNode);
    t.false(await may(attributes, known));
    t.false(await may(attributes, { ...node, name: 'system:node:' }), 'a node has a name');
    t.false(
      await may(attributes, { ...node, groups: ['system:authenticated'] }),
      'a name without the group is not a node',
    );
  });
}

const account = (name: string): UserInfo => ({
  name: `system:serviceaccount:kube-system:${name}`,
  groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'],
});
const component = (name: string): UserInfo => ({ name: `system:${name}`, groups: ['system:authenticated'] });
const managerLease = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager';
const volumes = '/api/v1/persistentvolumes';

const components: readonly (readonly [user: UserInfo, allowed: readonly string[], denied: readonly string[]])[] = [
  [
    component('kube-controller-manager'),
    ['GET /apis/example.com/v1/anything', `PUT ${managerLease}`, 'POST /api/v1/namespaces/a/serviceaccounts/x/token'],
    ['DELETE /api/v1/namespaces/a/pods/p', 'PUT /api/v1/namespaces/a/configmaps/x'],
  ],
  [
    component('kube-scheduler'),
    [
      'GET /apis/storage.k8s.io/v1/csinodes',
      'GET /apis/storage.k8s.io/v1/csistoragecapacities',
      'GET /apis/resource.k8s.io/v1/resourceslices',
      `PATCH ${volumes}/x`,
      'PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler',
    ],
    [`DELETE ${volumes}/x`, 'POST /api/v1/namespaces/kube-system/configmaps'],
  ],
  [
    account('deployment-controller'),
    ['POST /apis/apps/v1/namespaces/a/replicasets', 'PUT /apis/apps/v1/namespaces/a/deployments/x/status'],
    ['DELETE /apis/apps/v1/namespaces/a/deployments/x', 'GET /api/v1/namespaces/a/secrets'],
  ],
  [account('horizontal-pod-autoscaler'), ['PUT /apis/apps/v1/namespaces/a/deployments/x/scale'], []],
  [account('persistent-volume-binder'), [`POST ${volumes}`], ['POST /apis/storage.k8s.io/v1/storageclasses']],
  [account('kube-dns'), ['GET /api/v1/endpoints?watch=true'], ['GET /api/v1/pods']],
  [
    account('token-cleaner'),
    ['DELETE /api/v1/namespaces/kube-system/secrets/x'],
    ['DELETE /api/v1/namespaces/default/secrets/x'],
  ],
  [
    account('bootstrap-signer'),
    ['PUT /api/v1/namespaces/kube-public/configmaps/cluster-info', 'GET /api/v1/namespaces/kube-system/secrets'],
    ['PUT /api/v1/namespaces/kube-public/configmaps/other'],
  ],
];

for (const [user, allowed, denied] of components) {
  test(`${user.name} has the permissions of its role`, async (t) => {
    const asked = (request: string) => {
      const [method = '', path = ''] = request.split(' ');
      return may(parseRequestAttributes(method, path), user);
    };
    for (const request of allowed) t.true(await asked(request), request);
    for (const request of denied) t.false(await asked(request), request);
  });
}

test('each default binding grants an existing role, and the lists of rules are sorted as in Kubernetes', (t) => {
  const { clusterRoles, clusterRoleBindings, roles, roleBindings } = bootstrapPolicy;
  const keys = new Set([...clusterRoles, ...roles].map(({ metadata: m }) => `${m?.namespace ?? ''}/${m?.name}`));
  t.is(keys.size, clusterRoles.length + roles.length);
  for (const { metadata, roleRef } of [...clusterRoleBindings, ...roleBindings])
    t.true(keys.has(`${metadata?.namespace ?? ''}/${roleRef.name}`), metadata?.name);
  for (const { metadata, rules = [] } of [...clusterRoles, ...roles])
    for (const { verbs, resources = [] } of rules)
      for (const list of [verbs, resources]) t.deepEqual(list, [...list].sort(), metadata?.name);
});

test('a list of rules allows exactly what is allowed, except for nodes, whose list is incomplete', async (t) => {
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
  const groups = [
    '',
    'apps',
    'certificates.k8s.io',
    'coordination.k8s.io',
    'authorization.k8s.io',
    'authentication.k8s.io',
  ];
  const resources = [
    'pods',
    'nodes',
    'leases',
    'certificatesigningrequests',
    'selfsubjectaccessreviews',
    'selfsubjectreviews',
    'tokenreviews',
    '*',
  ];
  const attributes = fc.record({
    verb: fc.constantFrom('get', 'head', 'create', 'list', '*', 'impersonate'),
    isResourceRequest: fc.boolean(),
    apiGroup: fc.constantFrom(...groups),
    apiVersion: fc.constant('v1'),
    namespace: fc.constantFrom('', 'default', 'kube-node-lease'),
    resource: fc.constantFrom(...resources),
    subresource: fc.constantFrom('', 'status'),
    name: fc.constantFrom('', 'a', 'n1'),
    path: fc.constantFrom(...paths),
  });
  await fc.assert(
    fc.asyncProperty(attributes, fc.constantFrom(admin, known, anonymous, joining), async (asked, user) => {
      const rules = await defaults.rulesFor(user, asked.namespace);
      return rulesAllow(rules, asked) === (await may(asked, user));
    }),
    { numRuns: 1000 },
  );
  t.true((await defaults.rulesFor(node, 'a')).incomplete);
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
