import type { AccessAttributes, UserInfo } from '@keelson/core';
import type { PolicyRule } from '@keelson/kinds';
import test from 'ava';
import fc from 'fast-check';
import { RbacAuthorizer } from '../../src/authorization/rbac-authorizer.ts';
import { type KeptBinding, keepBinding, RbacIndex } from '../../src/authorization/rbac-index.ts';

const get: AccessAttributes = {
  ...{ verb: 'get', isResourceRequest: true, apiGroup: '', apiVersion: 'v1', namespace: 'a', resource: 'pods' },
  ...{ subresource: '', name: 'p', path: '/api/v1/namespaces/a/pods/p' },
};
const jane: UserInfo = { name: 'jane', groups: ['devs'] };
const group = 'rbac.authorization.k8s.io';
const pods: PolicyRule = { verbs: ['get'], apiGroups: [''], resources: ['pods'] };

function binding(kind: 'Role' | 'ClusterRole', role: string, namespace: string, subject: object): KeptBinding {
  return keepBinding({
    apiVersion: `${group}/v1`,
    kind: namespace === '' ? 'ClusterRoleBinding' : 'RoleBinding',
    metadata: { name: 'b', namespace },
    roleRef: { apiGroup: group, kind, name: role },
    subjects: [subject as { kind: string; name: string }],
  });
}

const reasons: readonly (readonly [KeptBinding, UserInfo, string])[] = [
  [
    binding('ClusterRole', 'reader', '', { kind: 'User', name: 'jane' }),
    jane,
    'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to User "jane"',
  ],
  [
    binding('Role', 'reader', 'a', { kind: 'Group', name: 'devs' }),
    jane,
    'RBAC: allowed by RoleBinding "b/a" of Role "reader" to Group "devs"',
  ],
  [
    binding('ClusterRole', 'reader', 'a', { kind: 'ServiceAccount', name: 'robot' }),
    { name: 'system:serviceaccount:a:robot', groups: [] },
    'RBAC: allowed by RoleBinding "b/a" of ClusterRole "reader" to ServiceAccount "robot/a"',
  ],
];

test('the reason names binding, role and subject as Kubernetes does', (t) => {
  for (const [kept, user, reason] of reasons) {
    const index = new RbacIndex();
    index.putRole('reader', [pods]);
    index.putRole('a/reader', [pods]);
    index.addBinding(kept);
    t.deepEqual(new RbacAuthorizer(index).authorize(get, user), { allowed: true, reason });
  }
});

test('a binding of a role that does not exist is the reason of a refusal and an error of the list of rules', (t) => {
  const index = new RbacIndex();
  index.addBinding(binding('ClusterRole', 'gone', '', { kind: 'User', name: 'jane' }));
  const authorizer = new RbacAuthorizer(index);
  const reason = 'clusterrole.rbac.authorization.k8s.io "gone" not found';
  t.deepEqual(authorizer.authorize(get, jane), { allowed: false, reason: `RBAC: ${reason}` });
  t.is(authorizer.rulesFor(jane, 'a').evaluationError, reason);
});

test('before roles and bindings are loaded there is no opinion, with the reason', (t) => {
  const index = new RbacIndex();
  index.putRole('reader', [pods]);
  index.addBinding(binding('ClusterRole', 'reader', '', { kind: 'User', name: 'jane' }));
  let loaded = false;
  const authorizer = new RbacAuthorizer(index, () => loaded);
  const reason = 'RBAC: roles and bindings are not loaded yet';
  t.deepEqual(authorizer.authorize(get, jane), { allowed: false, reason });
  t.true(authorizer.rulesFor(jane, 'a').incomplete);
  loaded = true;
  t.true(authorizer.authorize(get, jane).allowed);
});

test('attributes and users with any characters are never confused with others', (t) => {
  const part = fc.constantFrom('', '\n', '1', ':', '1:', 'get', 'a', '/', '"', ',');
  const resource = fc.tuple(part, part, part, part, part);
  fc.assert(
    fc.property(resource, resource, fc.array(part), fc.array(part), (one, other, groups, others) => {
      const index = new RbacIndex();
      const [verb, apiGroup, name, subresource, namespace] = one;
      const resources = [subresource === '' ? name : `${name}/${subresource}`];
      index.putRole('r', [{ verbs: [verb], apiGroups: [apiGroup], resources }]);
      index.addBinding(binding('ClusterRole', 'r', namespace, { kind: 'Group', name: 'g' }));
      const authorizer = new RbacAuthorizer(index);
      const asked = ([v, g, r, s, n]: typeof one): AccessAttributes => ({
        ...{ ...get, verb: v, apiGroup: g, resource: r, subresource: s, namespace: n },
      });
      authorizer.authorize(asked(one), { name: 'u', groups: ['g', ...groups] });
      const fresh = new RbacAuthorizer(index);
      for (const user of [
        { name: 'u', groups: ['g', ...others] },
        { name: 'u', groups: others },
      ])
        t.is(authorizer.authorize(asked(other), user).allowed, fresh.authorize(asked(other), user).allowed);
    }),
    { numRuns: 300 },
  );
});

test('a decision from the cache does not depend on the number of roles and bindings', (t) => {
  const index = new RbacIndex();
  for (let i = 0; i < 1_000; i += 1) index.putRole(`r${i}`, [{ ...pods, resources: [`kind${i}`] }, pods]);
  for (let i = 0; i < 5_000; i += 1) {
    index.addBinding(binding('ClusterRole', `r${i % 1_000}`, `n${i % 500}`, { kind: 'User', name: `u${i}` }));
  }
  index.addBinding(binding('ClusterRole', 'r7', 'a', { kind: 'User', name: 'jane' }));
  let lookups = 0;
  const counted = new Proxy(index, {
    get(target, property) {
      if (property === 'grantsOf') lookups += 1;
      const value = Reflect.get(target, property, target) as unknown;
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const authorizer = new RbacAuthorizer(counted);
  for (let i = 0; i < 1_000; i += 1) t.true(authorizer.authorize({ ...get, name: `p${i}` }, { ...jane }).allowed);
  t.is(lookups, 2, 'the bindings of the cluster and of the namespace, once');
});
