import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@keelson/testing';
import type { ExecutionContext } from 'ava';
import { runKeelson } from '../../src/keelson-process.ts';
import { findKubectl, Kubectl } from '../../src/kubectl.ts';
import { type KubectlContext, kubectlTest } from '../../src/kubectl-cluster.ts';

const test = kubectlTest();

type Context = ExecutionContext<KubectlContext>;

const keelson = (t: Context, ...args: string[]) => runKeelson([...args, '--data', t.context.server.data]);

/** A user created by `keelson user add`, and a kubectl with its kubeconfig. */
async function userOf(t: Context, name: string, ...args: string[]): Promise<Kubectl> {
  const { folder, server } = t.context;
  const { code, stderr } = await keelson(t, 'user', 'add', name, ...args);
  if (code !== 0) throw new Error(stderr);
  return new Kubectl(findKubectl() ?? '', join(server.data, 'users', `${name}.kubeconfig`), folder);
}

/** Repeats a command until it succeeds: the decisions of a server follow a write of roles within moments. */
const succeeds = (kubectl: Kubectl, args: readonly string[]) => eventually(() => kubectl.run(args));

test('keelson user add --role edit --namespace creates a kubeconfig with exactly these permissions', async (t) => {
  const { kubectl } = t.context;
  t.regex(
    (await keelson(t, 'user', 'add', 'bob', '--role', 'edit', '--namespace', 'team-a')).stderr,
    /^keelson: the namespace team-a does not exist; run kubectl create namespace team-a first\n$/,
  );
  await kubectl.run(['create', 'namespace', 'team-a']);
  const added = await keelson(t, 'user', 'add', 'bob', '--role', 'edit', '--namespace', 'team-a');
  t.is(added.code, 0, added.stderr);
  t.regex(added.stdout, /^RoleBinding bob-edit in team-a grants ClusterRole edit\n/);
  const file = /^ {2}kubectl --kubeconfig=(\S+) auth can-i --list -n team-a$/m.exec(added.stdout)?.[1] ?? '';
  t.is((await stat(file)).mode & 0o777, 0o600);
  const bob = new Kubectl(findKubectl() ?? '', file, t.context.folder);
  await succeeds(bob, ['get', 'pods']);

  await bob.run(['create', 'configmap', 'mine', '--from-literal=a=b']);
  await bob.run(['create', 'secret', 'generic', 'mine', '--from-literal=a=b']);
  await bob.run(['create', 'deployment', 'web', '--image=x']);
  await bob.run(['scale', 'deployment', 'web', '--replicas=2']);
  await bob.run(['label', 'configmap', 'mine', 'x=y']);
  await bob.run(['delete', 'deployment', 'web']);
  t.regex(await bob.run(['get', 'configmaps']), /^mine /m);

  const refused = async (message: RegExp, ...args: string[]) => {
    const { code, stderr } = await bob.try(args);
    t.is(code, 1, args.join(' '));
    t.regex(stderr, message);
  };
  const forbidden = (what: string, place: string) =>
    new RegExp(`^Error from server \\(Forbidden\\): .*User "bob" cannot ${what} in API group ".*" ${place}`, 'm');
  await refused(forbidden('list resource "pods"', 'in the namespace "default"'), 'get', 'pods', '-n', 'default');
  await refused(forbidden('list resource "pods"', 'at the cluster scope'), 'get', 'pods', '-A');
  await refused(forbidden('watch resource "pods"', 'at the cluster scope'), 'get', '--raw', '/api/v1/pods?watch=true');
  await refused(
    forbidden('watch resource "secrets"', 'in the namespace "kube-system"'),
    ...['get', '--raw', '/api/v1/namespaces/kube-system/secrets?watch=true'],
  );
  await refused(forbidden('list resource "nodes"', 'at the cluster scope'), 'get', 'nodes');
  await refused(forbidden('list resource "namespaces"', 'at the cluster scope'), 'get', 'namespaces');
  await refused(
    forbidden('delete resource "namespaces"', 'in the namespace "team-a"'),
    'delete',
    'namespace',
    'team-a',
  );
  await refused(
    /cannot create resource "roles" in API group "rbac\.authorization\.k8s\.io" in the namespace "team-a"/,
    ...['create', 'role', 'r', '--verb=get', '--resource=pods'],
  );
  await refused(/User "bob" cannot get path "\/metrics"/, 'get', '--raw', '/metrics');
  t.is(await bob.run(['get', '--raw', '/healthz']), 'ok');
});

test('auth whoami, can-i and can-i --list report the rules of a user', async (t) => {
  const { kubectl } = t.context;
  const carl = await userOf(t, 'carl', '--group', 'ops', '--role', 'view', '--namespace', 'default');
  await succeeds(carl, ['get', 'pods']);
  const whoami = await carl.run(['auth', 'whoami']);
  t.regex(whoami, /^Username\s+carl$/m);
  t.regex(whoami, /^Groups\s+\[ops system:authenticated\]$/m);
  t.is((await carl.run(['auth', 'can-i', 'list', 'pods'])).trim(), 'yes');
  t.is((await carl.try(['auth', 'can-i', 'create', 'pods'])).stdout.trim(), 'no');
  t.is((await carl.try(['auth', 'can-i', 'list', 'secrets'])).stdout.trim(), 'no');
  const list = await carl.run(['auth', 'can-i', '--list']);
  t.regex(list, /^pods\s+\[\]\s+\[\]\s+\[get list watch\]$/m);
  t.regex(list, /^selfsubjectaccessreviews\.authorization\.k8s\.io\s+\[\]\s+\[\]\s+\[create\]$/m);
  t.regex(list, /^\s+\[\/api\/\*\]\s+\[\]\s+\[get\]$/m);
  t.notRegex(list, /^secrets /m);
  t.is((await kubectl.run(['auth', 'can-i', 'list', 'pods', '--as', 'carl', '-n', 'default'])).trim(), 'yes');
  t.is((await kubectl.try(['auth', 'can-i', 'list', 'pods', '--as', 'carl', '-n', 'kube-system'])).stdout.trim(), 'no');
  t.regex(
    (await carl.try(['get', 'pods', '--as', 'bob'])).stderr,
    /cannot impersonate resource "users" in API group ""/,
  );
});

test('create role, rolebinding and serviceaccount grant permissions of their author, and nothing else', async (t) => {
  const { kubectl } = t.context;
  await kubectl.run(['create', 'namespace', 'team-b']);
  const dora = await userOf(t, 'dora', '--role', 'admin', '--namespace', 'team-b');
  await succeeds(dora, ['get', 'roles']);
  await dora.run(['create', 'role', 'reader', '--verb=get,list', '--resource=pods,pods/log']);
  await dora.run(['create', 'serviceaccount', 'robot']);
  await dora.run(['create', 'rolebinding', 'robot', '--role=reader', '--serviceaccount=team-b:robot']);
  await dora.run(['create', 'rolebinding', 'friends', '--clusterrole=view', '--group=friends', '--user=emil']);
  const wide = await dora.run(['get', 'rolebindings', '-o', 'wide']);
  t.regex(wide, /^NAME\s+ROLE\s+AGE\s+USERS\s+GROUPS\s+SERVICEACCOUNTS$/m);
  t.regex(wide, /^robot\s+Role\/reader\s+\S+\s+team-b\/robot$/m);
  t.regex(wide, /^friends\s+ClusterRole\/view\s+\S+\s+emil\s+friends/m);
  t.regex(await dora.run(['get', 'roles']), /^NAME\s+CREATED AT\nreader\s+\d{4}-\d\d-\d\dT/m);
  t.regex(await dora.run(['describe', 'role', 'reader']), /pods\/log\s+\[\]\s+\[\]\s+\[get list\]/);

  const node = await dora.try(['create', 'role', 'nodes', '--verb=get', '--resource=nodes']);
  t.regex(
    node.stderr,
    /roles\.rbac\.authorization\.k8s\.io "nodes" is forbidden: user "dora" \(groups=\["system:authenticated"\]\) is attempting to grant RBAC permissions not currently held:\n\{APIGroups:\[""\], Resources:\["nodes"\], Verbs:\["get"\]\}/,
  );
  t.regex(
    (await dora.try(['create', 'rolebinding', 'x', '--clusterrole=cluster-admin', '--user=dora'])).stderr,
    /is attempting to grant RBAC permissions not currently held:\n/,
  );
  t.regex(
    (await dora.try(['create', 'clusterrole', 'x', '--verb=get', '--resource=pods'])).stderr,
    /cannot create resource "clusterroles" in API group "rbac\.authorization\.k8s\.io" at the cluster scope/,
  );
  const robot = ['--as', 'system:serviceaccount:team-b:robot', '-n', 'team-b'];
  await succeeds(kubectl, ['get', 'pods', ...robot]);
  t.regex(
    (await kubectl.try(['get', 'secrets', ...robot])).stderr,
    /User "system:serviceaccount:team-b:robot" cannot list/,
  );
});

test('clusterroles and auth reconcile: rules and subjects are added, the role of a binding is replaced', async (t) => {
  const { kubectl } = t.context;
  await kubectl.run(['create', 'clusterrole', 'checker', '--verb=get', '--non-resource-url=/metrics']);
  await kubectl.run(['create', 'clusterrole', 'all', '--aggregation-rule=example.com/all=true']);
  await kubectl.run(['create', 'clusterrolebinding', 'checkers', '--clusterrole=checker', '--group=checkers']);
  const list = (name: string, verb: string) => ({
    input: JSON.stringify({
      apiVersion: 'v1',
      kind: 'List',
      items: [
        {
          ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' },
          metadata: { name: 'checker', labels: { 'example.com/all': 'true' } },
          rules: [{ verbs: [verb], apiGroups: [''], resources: ['nodes'] }],
        },
        {
          ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRoleBinding', metadata: { name: 'checkers' } },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
          subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'fay' }],
        },
      ],
    }),
  });
  t.regex(await kubectl.run(['auth', 'reconcile', '-f', '-'], list('checker', 'list')), /checker reconciled/);
  const role = await kubectl.json<{ rules: { verbs: string[] }[] }>(['get', 'clusterrole', 'checker']);
  t.deepEqual(
    role.rules.map(({ verbs }) => verbs),
    [['get'], ['list']],
  );
  const binding = await kubectl.json<{ subjects: { name: string }[] }>(['get', 'clusterrolebinding', 'checkers']);
  t.deepEqual(
    binding.subjects.map(({ name }) => name),
    ['checkers', 'fay'],
  );
  await succeeds(kubectl, ['get', 'nodes', '--as', 'fay']);
  await kubectl.run(['auth', 'reconcile', '-f', '-'], list('view', 'list'));
  t.regex(await kubectl.run(['get', 'clusterrolebinding', 'checkers']), /ClusterRole\/view/);
  t.regex(
    (await kubectl.try(['patch', 'clusterrolebinding', 'checkers', '-p', '{"roleRef":{"name":"edit"}}'])).stderr,
    /roleRef: Invalid value: .*: cannot change roleRef/,
  );
  await succeeds(kubectl, ['wait', '--for=jsonpath={.rules[1].verbs[0]}=list', '--timeout=1s', 'clusterrole/all']);
});

test('keelson can-i --why names the rule that allows a request, or the smallest rule that would', async (t) => {
  const { kubectl } = t.context;
  await kubectl.run(['create', 'clusterrole', 'lister', '--verb=get,list', '--resource=configmaps,secrets']);
  await kubectl.run(['create', 'rolebinding', 'gus-lists', '--clusterrole=lister', '--user=gus', '-n', 'default']);
  const canI = (...args: string[]) => keelson(t, 'can-i', '--as', 'gus', ...args, '--why');
  await succeeds(kubectl, ['get', 'secrets', '--as', 'gus', '-n', 'default']);
  t.deepEqual(await canI('list', 'secrets', '-n', 'default'), {
    code: 0,
    stdout:
      'yes\nRoleBinding gus-lists in default grants ClusterRole lister to User gus\n' +
      'rule: {"verbs":["get","list"],"apiGroups":[""],"resources":["configmaps","secrets"]}\n',
    stderr: '',
  });
  const refused = await canI('update', 'deployments.apps/web', '--subresource', 'scale', '-n', 'kube-system');
  t.is(refused.code, 1);
  const rule = '{"verbs":["update"],"apiGroups":["apps"],"resources":["deployments/scale"],"resourceNames":["web"]}';
  const [answer, smallest, ...commands] = refused.stdout.trimEnd().split('\n');
  t.deepEqual([answer, smallest], ['no', `no rule allows it; the smallest rule that would: ${rule}`]);
  for (const command of commands) await kubectl.run(command.trim().split(' ').slice(1));
  await eventually(
    async () =>
      (await canI('update', 'deployments.apps/web', '--subresource', 'scale', '-n', 'kube-system')).code === 0,
  );
  t.regex((await canI('get', '/metrics')).stdout, /^no\n.*"nonResourceURLs":\["\/metrics"\]/);
  t.regex(
    (await canI('get', 'node/n1')).stdout,
    /kubectl create clusterrole get-nodes --verb=get --resource=nodes --resource-name=n1/,
  );
  t.is((await keelson(t, 'can-i', 'delete', 'nodes')).stdout, 'yes\n');
  const usage = await keelson(t, 'can-i', 'delete');
  t.deepEqual([usage.code, usage.stdout], [2, '']);
  t.is((await keelson(t, 'user', 'add', 'system:admin')).code, 2);
  t.regex(
    (await keelson(t, 'user', 'add', 'hal', '--role', 'nothing')).stderr,
    /there is no cluster role of this name\n$/,
  );
  t.regex((await keelson(t, 'can-i', '--help')).stdout, /^keelson can-i /);
});
