import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BootstrapRoles } from '@keelson/access';
import { createInProcessClient } from '@keelson/client';
import { mastersAuthorizer, type StatusError, type UserInfo } from '@keelson/core';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import {
  ClusterRole,
  ClusterRoleBinding,
  type PolicyRule,
  RbacV1beta1Role,
  Role,
  RoleBinding,
  SelfSubjectRulesReview,
  SubjectAccessReview,
} from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { type ControlPlane, createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import type { ControlPlaneOptions } from '../../src/control-plane/plane-options.ts';

const group = 'rbac.authorization.k8s.io';
const apiVersion = `${group}/v1`;
const bob: UserInfo = { name: 'bob', groups: ['devs', 'system:authenticated'] };
const pods = (...verbs: string[]): PolicyRule => ({ verbs, apiGroups: [''], resources: ['pods'] });

async function planeOf(t: ExecutionContext, options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const plane = await createControlPlane(options);
  t.teardown(() => plane.close());
  return plane;
}

const as = (plane: ControlPlane, user: UserInfo) => createInProcessClient(plane.registry, { user, clock: systemClock });

const clusterRole = (name: string, rules: PolicyRule[], rest: Partial<ClusterRole> = {}): ClusterRole => ({
  ...{ apiVersion, kind: 'ClusterRole', metadata: { name }, rules },
  ...rest,
});
const role = (name: string, rules: PolicyRule[]): Role => ({ apiVersion, kind: 'Role', metadata: { name }, rules });
const userBob = { kind: 'User', apiGroup: group, name: 'bob' };
const bind = (name: string, kind: 'Role' | 'ClusterRole', roleName: string, namespace = ''): RoleBinding => ({
  ...{ apiVersion, kind: namespace === '' ? 'ClusterRoleBinding' : 'RoleBinding' },
  metadata: { name, ...(namespace === '' ? {} : { namespace }) },
  ...{ subjects: [userBob], roleRef: { apiGroup: group, kind, name: roleName } },
});

const messageOf = async (t: ExecutionContext, attempt: Promise<unknown>, code = 403): Promise<string> => {
  const error = (await t.throwsAsync(attempt)) as StatusError;
  t.is(error.status.code, code, error.message);
  return error.message;
};

/** The answer of the plane to an access review about bob. */
async function review(plane: ControlPlane, resourceAttributes: Record<string, string>) {
  const { status } = await plane.client(SubjectAccessReview).create({
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user: bob.name, groups: [...bob.groups], resourceAttributes },
  } as SubjectAccessReview);
  return status;
}

test('the default roles exist, admin, edit and view with their rules', async (t) => {
  const plane = await planeOf(t);
  const roles = plane.client(ClusterRole);
  const { rules: view = [] } = await roles.get('view');
  t.true(view.some(({ resources, verbs }) => resources?.includes('pods/log') && verbs.includes('watch')));
  t.false(view.some(({ resources }) => resources?.includes('secrets')));
  const { metadata, rules: edit = [], aggregationRule } = await roles.get('edit');
  t.true(edit.some(({ resources, verbs }) => resources?.includes('secrets') && verbs.includes('create')));
  t.is(aggregationRule?.clusterRoleSelectors?.length, 1);
  t.is(metadata?.labels?.['kubernetes.io/bootstrapping'], 'rbac-defaults');
  const { rules: admin = [] } = await roles.get('admin');
  t.true(admin.some(({ resources }) => resources?.includes('rolebindings')));
  const { subjects } = await plane.client(ClusterRoleBinding).get('cluster-admin');
  t.is(subjects?.[0]?.name, 'system:masters');
});

test('a change of a role or a binding applies to the next decisions, and reviews name the reason', async (t) => {
  const plane = await planeOf(t);
  const question = { verb: 'list', resource: 'pods', namespace: 'default' };
  t.deepEqual(await review(plane, question), { allowed: false });
  await plane
    .client(Role)
    .namespace('default')
    .create(role('reader', [pods('get')]));
  await plane
    .client(RoleBinding)
    .namespace('default')
    .create(bind('bob', 'Role', 'reader', 'default'));
  await plane
    .client(Role)
    .namespace('default')
    .update(role('reader', [pods('list')]));
  await until(async () => (await review(plane, question))?.allowed === true);
  t.deepEqual(await review(plane, question), {
    allowed: true,
    reason: 'RBAC: allowed by RoleBinding "bob/default" of Role "reader" to User "bob"',
  });
  t.false((await review(plane, { ...question, namespace: 'kube-system' }))?.allowed);
  t.false((await review(plane, { ...question, namespace: '' }))?.allowed);
  await plane.client(RoleBinding).namespace('default').delete('bob');
  await until(async () => (await review(plane, question))?.allowed === false);
});

test('a self subject rules review lists the rules of the roles of the caller', async (t) => {
  const plane = await planeOf(t);
  await plane.client(ClusterRole).create(clusterRole('reader', [pods('get', 'list')]));
  await plane
    .client(RoleBinding)
    .namespace('default')
    .create(bind('bob', 'ClusterRole', 'reader', 'default'));
  const rules = async (namespace: string) =>
    (
      await as(plane, bob)
        .resource(SelfSubjectRulesReview)
        .create({
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SelfSubjectRulesReview',
          spec: { namespace },
        } as SelfSubjectRulesReview)
    ).status;
  await until(async () =>
    Boolean((await rules('default'))?.resourceRules.some(({ resources }) => resources?.includes('pods'))),
  );
  const listed = await rules('default');
  t.deepEqual(
    listed?.resourceRules.filter(({ resources }) => resources?.includes('pods')),
    [{ verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] }],
  );
  t.true(listed?.nonResourceRules.some(({ nonResourceURLs }) => nonResourceURLs?.includes('/api/*')));
  t.false(listed?.incomplete);
  t.false((await rules('kube-system'))?.resourceRules.some(({ resources }) => resources?.includes('pods')));
});

test('a role with an aggregation rule has the rules of the roles that it selects, also after they change', async (t) => {
  const plane = await planeOf(t);
  const roles = plane.client(ClusterRole);
  const labels = { 'example.com/collect': 'yes' };
  await roles.create(clusterRole('all', [], { aggregationRule: { clusterRoleSelectors: [{ matchLabels: labels }] } }));
  await roles.create(clusterRole('b', [pods('list')], { metadata: { name: 'b', labels } }));
  await roles.create(clusterRole('a', [pods('get')], { metadata: { name: 'a', labels } }));
  await roles.create(clusterRole('c', [pods('get')], { metadata: { name: 'c', labels } }));
  const rules = async () => JSON.stringify((await roles.get('all')).rules);
  await until(async () => (await rules()) === JSON.stringify([pods('get'), pods('list')]));
  await roles.delete('b');
  await until(async () => (await rules()) === JSON.stringify([pods('get')]));
  await roles.create(
    clusterRole('mine', [pods('patch')], {
      metadata: { name: 'mine', labels: { [`${group}/aggregate-to-view`]: 'true' } },
    }),
  );
  await until(async () =>
    ((await roles.get('admin')).rules ?? []).some(({ verbs }) => verbs.includes('patch') && verbs.length === 1),
  );
  t.pass();
});

test('users cannot grant permissions that they do not have', async (t) => {
  const plane = await planeOf(t);
  await plane.client(ClusterRole).create(clusterRole('reader', [pods('get', 'list')]));
  await plane.client(ClusterRole).create(clusterRole('writer', [pods('create')]));
  await plane
    .client(ClusterRole)
    .create(
      clusterRole('manager', [
        { verbs: ['*'], apiGroups: [group], resources: ['roles', 'rolebindings', 'clusterroles'] },
      ]),
    );
  await plane
    .client(RoleBinding)
    .namespace('default')
    .create(bind('reader', 'ClusterRole', 'reader', 'default'));
  await until(async () =>
    Boolean((await review(plane, { verb: 'get', resource: 'pods', namespace: 'default' }))?.allowed),
  );
  const client = as(plane, bob);
  const roles = client.resource(Role).namespace('default');
  t.is(
    await messageOf(
      t,
      roles.create(role('more', [pods('get', 'delete', 'watch'), { ...pods('get'), resources: ['secrets'] }])),
    ),
    'roles.rbac.authorization.k8s.io "more" is forbidden: user "bob" (groups=["devs" "system:authenticated"]) is ' +
      'attempting to grant RBAC permissions not currently held:\n' +
      '{APIGroups:[""], Resources:["pods"], Verbs:["delete" "watch"]}\n' +
      '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
  );
  await messageOf(t, roles.update(role('put', [pods('delete')])));
  await messageOf(
    t,
    client
      .resource(RbacV1beta1Role)
      .namespace('default')
      .create({ ...role('old', [pods('*')]), apiVersion: `${group}/v1beta1` }),
  );
  await roles.create(role('same', [pods('get')]));
  await messageOf(t, roles.patch('same', 'json', [{ op: 'add', path: '/rules/0/verbs/-', value: 'delete' }]));
  t.regex(await messageOf(t, roles.update(role('same', [pods('*')]))), /not currently held:\n.*Verbs:\["\*"\]\}$/);
  await roles.update(role('same', [pods('list'), { ...pods('get'), resourceNames: ['one'] }]));
  t.regex(
    await messageOf(t, client.resource(ClusterRole).create(clusterRole('same', [pods('get')]))),
    /clusterroles\.rbac\.authorization\.k8s\.io "same" is forbidden: user "bob"/,
    'the permission is only held in a namespace',
  );
  const bindings = client.resource(RoleBinding).namespace('default');
  await bindings.create(bind('friends', 'ClusterRole', 'reader', 'default'));
  t.regex(
    await messageOf(t, bindings.create(bind('writers', 'ClusterRole', 'writer', 'default'))),
    /^rolebindings\.rbac\.authorization\.k8s\.io "writers" is forbidden: user "bob" .*\n\{APIGroups:\[""\], Resources:\["pods"\], Verbs:\["create"\]\}$/,
  );
  t.is(
    await messageOf(t, bindings.create(bind('none', 'Role', 'gone', 'default')), 404),
    'rolebindings.rbac.authorization.k8s.io "gone" not found',
  );
});

test('the verbs escalate and bind permit granting what the user does not have', async (t) => {
  const plane = await planeOf(t);
  const rule = (verb: string, resource: string, name: string): PolicyRule => ({
    ...{ verbs: [verb], apiGroups: [group], resources: [resource], resourceNames: [name] },
  });
  await plane
    .client(ClusterRole)
    .create(clusterRole('granter', [rule('escalate', 'roles', 'mine'), rule('bind', 'clusterroles', 'edit')]));
  await plane
    .client(RoleBinding)
    .namespace('default')
    .create(bind('granter', 'ClusterRole', 'granter', 'default'));
  await until(async () =>
    Boolean(
      (await review(plane, { verb: 'escalate', group, resource: 'roles', name: 'mine', namespace: 'default' }))
        ?.allowed,
    ),
  );
  const client = as(plane, bob);
  const roles = client.resource(Role).namespace('default');
  await roles.create(role('mine', [pods('*')]));
  await messageOf(t, roles.create(role('other', [pods('*')])));
  const bindings = client.resource(RoleBinding).namespace('default');
  await bindings.create(bind('edit', 'ClusterRole', 'edit', 'default'));
  await messageOf(t, bindings.create(bind('admin', 'ClusterRole', 'admin', 'default')));
});

test('an aggregation rule requires all permissions', async (t) => {
  const plane = await planeOf(t);
  const client = as(plane, bob);
  const collecting = clusterRole('all', [], { aggregationRule: { clusterRoleSelectors: [{}] } });
  t.is(
    await messageOf(t, client.resource(ClusterRole).create(collecting)),
    'clusterroles.rbac.authorization.k8s.io "all" is forbidden: must have cluster-admin privileges to use the aggregationRule',
  );
  await plane.client(ClusterRoleBinding).create(bind('bob', 'ClusterRole', 'cluster-admin'));
  await until(async () => Boolean((await review(plane, { verb: 'x', resource: 'y', group: 'z' }))?.allowed));
  await client.resource(ClusterRole).create(collecting);
  t.pass();
});

test('rules with too many combinations are rejected without comparing all of them', async (t) => {
  const plane = await planeOf(t);
  const many = (prefix: string) => Array.from({ length: 1_000 }, (_, i) => `${prefix}${i}`);
  const began = performance.now();
  t.regex(
    await messageOf(
      t,
      as(plane, bob)
        .resource(Role)
        .namespace('default')
        .create(role('huge', [{ verbs: many('v'), apiGroups: many('g'), resources: many('r') }])),
    ),
    /the rules have too many combinations/,
  );
  t.true(performance.now() - began < 20_000);
});

test('a start adds what default roles and bindings lack, and keeps what users have added or protected', async (t) => {
  const plane = await planeOf(t, { controllers: false });
  const roles = plane.client(ClusterRole);
  const bindings = plane.client(ClusterRoleBinding);
  const extra = { ...pods('get'), resources: ['extra'] };
  const [basic, discovery, node] = await Promise.all(
    ['system:basic-user', 'system:discovery', 'system:node'].map((name) => roles.get(name)),
  );
  const [kept = extra, ...others] = basic?.rules ?? [];
  await roles.update({
    ...basic!,
    rules: [...others, extra],
    metadata: { ...basic!.metadata, labels: { mine: 'yes' } },
  });
  await roles.update({
    ...discovery!,
    rules: [],
    metadata: { ...discovery!.metadata, annotations: { 'rbac.authorization.kubernetes.io/autoupdate': 'false' } },
  });
  await roles.delete('system:monitoring');
  const masters = await bindings.get('cluster-admin');
  await bindings.update({ ...masters, subjects: [userBob] });
  await bindings.delete('system:basic-user');
  await bindings.create(bind('system:basic-user', 'ClusterRole', 'view'));
  const options = { client: plane.api, clock: systemClock, logger: silentLogger };
  await new BootstrapRoles(options).start();

  const completed = await roles.get('system:basic-user');
  t.deepEqual(completed.rules, [...others, extra, kept]);
  t.deepEqual(completed.metadata?.labels, { mine: 'yes', 'kubernetes.io/bootstrapping': 'rbac-defaults' });
  t.deepEqual((await roles.get('system:discovery')).rules, []);
  t.true(((await roles.get('system:monitoring')).rules ?? []).length > 0);
  const { subjects } = await bindings.get('cluster-admin');
  t.deepEqual(
    subjects?.map(({ name }) => name),
    ['bob', 'system:masters'],
  );
  t.is((await bindings.get('system:basic-user')).roleRef.name, 'system:basic-user', 'a role of a binding is restored');
  t.is((await roles.get('system:node')).metadata?.resourceVersion, node?.metadata.resourceVersion ?? '', 'unchanged');
  const before = (await roles.list()).items.map(({ metadata }) => metadata?.resourceVersion);
  await new BootstrapRoles(options).start();
  t.deepEqual(
    (await roles.list()).items.map(({ metadata }) => metadata?.resourceVersion),
    before,
    'a second start writes nothing',
  );
});

const wrongOptions: readonly (readonly [ControlPlaneOptions, RegExp])[] = [
  [{ authorization: { modes: ['RBAC', 'Node', 'RBAC'] } }, /^authorization.modes contains RBAC more than once$/],
  [{ authorization: { modes: ['ABAC' as 'RBAC'] } }, /^authorization.modes: unknown mode ABAC; the modes are Node, /],
  [{ authorization: { modes: ['Webhook'] } }, /^authorization.modes Webhook requires authorization.webhook/],
  [{ authorization: { policyFile: 'x' } }, /^authorization.policyFile requires authorization.modes with Policy$/],
  [{ authorization: { modes: ['Policy'], policyFile: '/no' } }, /^authorization.policyFile \/no cannot be read: /],
  [{ authorization: { webhook: { kubeconfig: 'x' } } }, /requires authorization.modes with Webhook$/],
  [
    { authorization: {}, authorizer: mastersAuthorizer },
    /^the options authorization and authorizer exclude each other$/,
  ],
];

test('invalid options of authorization are one sentence before anything is started', async (t) => {
  for (const [options, message] of wrongOptions)
    await t.throwsAsync(createControlPlane(options), { name: 'UsageError', message });
});

test('authorizers are asked in the order of the modes, and without RBAC roles have no effect', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-modes-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const policyFile = join(folder, 'policy.jsonl');
  const spec = { user: 'bob', namespace: 'default', resource: 'pods', apiGroup: '', readonly: true };
  const policy = { apiVersion: 'abac.authorization.kubernetes.io/v1beta1', kind: 'Policy', spec };
  await writeFile(policyFile, `${JSON.stringify(policy)}\n`);
  const plane = await planeOf(t, { authorization: { modes: ['Policy'], policyFile } });
  const question = { verb: 'get', resource: 'pods', namespace: 'default' };
  t.deepEqual(await review(plane, question), { allowed: true });
  t.deepEqual(await review(plane, { ...question, verb: 'create' }), { allowed: false });
  t.deepEqual((await plane.client(ClusterRole).list()).items, [], 'no default roles');
  const open = await planeOf(t, { authorization: { modes: ['RBAC', 'AlwaysAllow'] } });
  t.deepEqual(await review(open, { verb: 'create', resource: 'anything' }), { allowed: true });
});
