import type { AccessAttributes, UserInfo } from '@keelson/core';
import type { PolicyRule } from '@keelson/kinds';
import test from 'ava';
import fc from 'fast-check';
import { RbacAuthorizer } from '../../src/authorization/rbac-authorizer.ts';
import { type KeptBinding, keepBinding, RbacIndex } from '../../src/authorization/rbac-index.ts';
import { modelAllows, type RoleGraph, randomGraph, randomQuestion } from './rbac-model.ts';

const graphs = 60;
const questionsPerGraph = 1_000;

/** A generator of numbers below a bound from a seed. */
function generator(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}

function fill(index: RbacIndex, { roles, bindings }: RoleGraph): KeptBinding[] {
  for (const { namespace, name, rules } of roles)
    index.putRole(namespace === '' ? name : `${namespace}/${name}`, rules);
  const kept = bindings.map(keepBinding);
  for (const binding of kept) index.addBinding(binding);
  return kept;
}

test(`${graphs * questionsPerGraph} random decisions agree with a model that evaluates the definitions`, (t) => {
  const seed = Number(process.env['KEELSON_TEST_SEED'] ?? Date.now() % 2 ** 31);
  const random = generator(seed);
  let allowed = 0;
  for (let round = 0; round < graphs; round += 1) {
    const graph = randomGraph(random);
    const index = new RbacIndex();
    const kept = fill(index, graph);
    const authorizer = new RbacAuthorizer(index);
    const ask = (current: RoleGraph, count: number) => {
      for (let i = 0; i < count; i += 1) {
        const { attributes, user } = randomQuestion(random);
        const expected = modelAllows(current, attributes, user);
        const decision = authorizer.authorize(attributes, user);
        if (decision.allowed !== expected)
          t.fail(`seed ${seed}: ${JSON.stringify({ attributes, user, expected, decision, current })}`);
        if (expected) allowed += 1;
        if (expected !== (decision.reason?.startsWith('RBAC: allowed by ') ?? false))
          t.fail(`seed ${seed}: reason ${decision.reason}`);
      }
    };
    ask(graph, questionsPerGraph / 2);
    // Cached decisions do not outlive a change: half of the bindings and a role are removed, another role is replaced.
    const half = Math.floor(kept.length / 2);
    for (const binding of kept.slice(0, half)) index.removeBinding(binding);
    const [removed, replaced, ...rest] = graph.roles;
    if (removed === undefined || replaced === undefined) throw new Error('too few roles');
    const key = ({ namespace, name }: { namespace: string; name: string }) =>
      namespace === '' ? name : `${namespace}/${name}`;
    index.removeRole(key(removed));
    index.putRole(key(replaced), []);
    ask({ roles: [...rest, { ...replaced, rules: [] }], bindings: graph.bindings.slice(half) }, questionsPerGraph / 2);
  }
  t.true(allowed > graphs * questionsPerGraph * 0.1, `seed ${seed}: only ${allowed} requests were allowed`);
  t.true(allowed < graphs * questionsPerGraph * 0.9, `seed ${seed}: ${allowed} requests were allowed`);
});

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
