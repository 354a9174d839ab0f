import type { KindDefinition } from '@keelson/core';
import test from 'ava';
import { ClusterRole, ClusterRoleBinding, RbacV1beta1Role, Role, RoleBinding } from '../src/index.ts';
import { create, defaulted, row, update } from './helpers/writes.ts';

const group = 'rbac.authorization.k8s.io';
const metadata = { name: 'x' };
const pods = { verbs: ['get'], apiGroups: [''], resources: ['pods'] };
const healthz = { verbs: ['get'], nonResourceURLs: ['/healthz', '/healthz/*'] };
const view = { apiGroup: group, kind: 'ClusterRole', name: 'view' };
const jane = { kind: 'User', apiGroup: group, name: 'jane' };

type Case = readonly [title: string, fields: Record<string, unknown>, causes: readonly string[]];

function table(kind: KindDefinition, cases: readonly Case[]): void {
  for (const [title, fields, causes] of cases) {
    test(`${kind.kind} with ${title}`, (t) => t.deepEqual(create(kind, { metadata, ...fields }).causes, causes));
  }
}

table(Role, [
  ['no rules', {}, []],
  ['a rule for pods', { rules: [pods] }, []],
  ['a rule without verbs', { rules: [{ ...pods, verbs: [] }] }, ['rules[0].verbs Required']],
  ['a rule without groups', { rules: [pods, { ...pods, apiGroups: [] }] }, ['rules[1].apiGroups Required']],
  ['a rule without resources', { rules: [{ ...pods, resources: [] }] }, ['rules[0].resources Required']],
  ['paths', { rules: [healthz] }, ['rules[0].nonResourceURLs Invalid']],
]);

table(ClusterRole, [
  ['paths', { rules: [healthz] }, []],
  ['paths and resources in one rule', { rules: [{ ...healthz, ...pods }] }, ['rules[0].nonResourceURLs Invalid']],
  ['an aggregation rule', { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] } }, []],
  ['an empty aggregation rule', { aggregationRule: {} }, ['aggregationRule.clusterRoleSelectors Required']],
  [
    'an invalid selector',
    { aggregationRule: { clusterRoleSelectors: [{}, { matchExpressions: [{ key: 'a', operator: 'Near' }] }] } },
    ['aggregationRule.clusterRoleSelectors[1].matchExpressions[0].operator Invalid'],
  ],
]);

table(RoleBinding, [
  ['a role of its namespace', { roleRef: { kind: 'Role', name: 'r' }, subjects: [{ kind: 'User', name: 'jane' }] }, []],
  ['no role', {}, ['roleRef.kind NotSupported', 'roleRef.name Required']],
  ['a role of another group', { roleRef: { ...view, apiGroup: 'a' } }, ['roleRef.apiGroup NotSupported']],
  ['a role with a slash', { roleRef: { ...view, name: 'a/b' } }, ['roleRef.name Invalid']],
  ['a service account of its namespace', { roleRef: view, subjects: [{ kind: 'ServiceAccount', name: 'a' }] }, []],
  [
    'invalid subjects',
    {
      roleRef: view,
      subjects: [
        { kind: 'Robot', name: 'a' },
        { kind: 'User', name: '' },
        { kind: 'Group', name: 'g', apiGroup: 'a' },
        { kind: 'ServiceAccount', name: 'A', apiGroup: group },
      ],
    },
    [
      'subjects[0].kind NotSupported',
      'subjects[1].name Required',
      'subjects[2].apiGroup NotSupported',
      'subjects[3].name Invalid',
      'subjects[3].apiGroup NotSupported',
    ],
  ],
]);

table(ClusterRoleBinding, [
  ['a role of a namespace', { roleRef: { kind: 'Role', name: 'r' } }, ['roleRef.kind NotSupported']],
  [
    'a service account without its namespace',
    { roleRef: view, subjects: [{ kind: 'ServiceAccount', name: 'a' }] },
    ['subjects[0].namespace Required'],
  ],
]);

test('names of roles and bindings may contain colons', (t) => {
  for (const kind of [Role, ClusterRole, RoleBinding, ClusterRoleBinding]) t.is(kind.strategy.nameRule, 'pathSegment');
});

test('the API group of roles and of users and groups has a default', (t) => {
  const { roleRef, subjects } = defaulted(RoleBinding, {
    metadata,
    roleRef: { kind: 'Role', name: 'r' },
    subjects: [
      { kind: 'User', name: 'jane' },
      { kind: 'Group', name: 'devs' },
      { kind: 'ServiceAccount', name: 'a' },
    ],
  });
  t.is(roleRef.apiGroup, group);
  t.deepEqual(
    subjects?.map(({ apiGroup }) => apiGroup),
    [group, group, undefined],
  );
});

test('the role of a binding cannot be changed, its subjects can', (t) => {
  const old = create(ClusterRoleBinding, { metadata, roleRef: view, subjects: [jane] }).object;
  const causes = (change: (binding: ClusterRoleBinding) => void) => update(ClusterRoleBinding, old, change).causes;
  t.deepEqual(
    causes((binding) => {
      binding.subjects = [];
    }),
    [],
  );
  t.deepEqual(
    causes((binding) => {
      binding.roleRef.name = 'edit';
    }),
    ['roleRef Invalid'],
  );
});

test('the table of bindings lists role and subjects', (t) => {
  const binding = create(RoleBinding, {
    metadata,
    roleRef: view,
    subjects: [jane, { kind: 'Group', name: 'devs' }, { kind: 'ServiceAccount', name: 'a', namespace: 'n' }],
  }).object;
  const { Role: role, Users, Groups, ServiceAccounts } = row(RoleBinding, binding);
  t.deepEqual([role, Users, Groups, ServiceAccounts], ['ClusterRole/view', 'jane', 'devs', 'n/a']);
});

test('v1beta1 is stored as v1', (t) => {
  const old = create(RbacV1beta1Role, { metadata, rules: [pods] }).object;
  const conversion = RbacV1beta1Role.storage!;
  const stored = conversion.toStorage(old);
  t.is(stored.apiVersion, `${group}/v1`);
  t.deepEqual(conversion.fromStorage(stored), { ...old, apiVersion: `${group}/v1beta1` });
});
