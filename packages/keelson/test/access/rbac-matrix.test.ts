import { Agent, request } from 'node:http';
import { type KeptBinding, keepBinding, RbacAuthorizer, RbacIndex } from '@keelson/access';
import type { KindDefinition, KubeObject, ResourceClient, UserInfo } from '@keelson/core';
import { ClusterRole, ClusterRoleBinding, Namespace, Role, RoleBinding, SubjectAccessReview } from '@keelson/kinds';
import test, { type ExecutionContext } from 'ava';
import { type ControlPlane, createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import { modelAllows, type Random, type RoleGraph, randomGraph, randomQuestion } from './rbac-model.ts';

const seed = Number(process.env['KEELSON_TEST_SEED'] ?? Date.now() % 2 ** 31);

const graphs = 60;
const questionsPerGraph = 1_000;

/** A generator of numbers below a bound from a seed. */
function generator(seed: number): Random {
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

const overHttp = 2_400;
const concurrent = 12;
const group = 'rbac.authorization.k8s.io';

const apiVersion = `${group}/v1`;

/** Writes a random graph; resolves when decisions depend on it. */
async function install(t: ExecutionContext, plane: ControlPlane, { roles, bindings }: RoleGraph): Promise<void> {
  const subjects = [{ kind: 'User', apiGroup: group, name: 'marker' }];
  const marker = (kind: string, namespace: string) => ({ metadata: { name: 'marker', namespace }, kind, apiVersion });
  const everything = { verbs: ['*'], apiGroups: ['marker'], resources: ['*'] };
  for (const name of ['a', 'b'])
    await plane.client(Namespace).create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  for (const { namespace, name, rules } of roles) {
    const kind = namespace === '' ? ClusterRole : Role;
    const object = { apiVersion, kind: kind.kind, metadata: { name, namespace }, rules };
    await clientOf(plane, kind as typeof Role, namespace).create(object);
  }
  for (const binding of bindings) {
    const { namespace = '' } = binding.metadata ?? {};
    const kind = namespace === '' ? ClusterRoleBinding : RoleBinding;
    await clientOf(plane, kind as typeof RoleBinding, namespace).create({ ...binding, apiVersion, kind: kind.kind });
  }
  // Each kind has a watch of its own, so the last object of each kind is a marker.
  const inCluster = { apiGroup: group, kind: 'ClusterRole', name: 'marker' };
  const inNamespace = { apiGroup: group, kind: 'Role', name: 'marker' };
  await plane.client(ClusterRole).create({ ...marker('ClusterRole', ''), rules: [everything] });
  await plane.client(ClusterRoleBinding).create({ ...marker('ClusterRoleBinding', ''), subjects, roleRef: inCluster });
  await clientOf(plane, Role, 'a').create({ ...marker('Role', 'a'), rules: [{ ...everything, apiGroups: ['here'] }] });
  await clientOf(plane, RoleBinding, 'a').create({ ...marker('RoleBinding', 'a'), subjects, roleRef: inNamespace });
  const end = performance.now() + 30_000;
  for (const attributes of [
    { verb: 'get', group: 'marker', resource: 'x' },
    { verb: 'get', group: 'here', resource: 'x', namespace: 'a' },
  ]) {
    const allowed = async () =>
      (
        await plane.client(SubjectAccessReview).create({
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SubjectAccessReview',
          spec: { user: 'marker', resourceAttributes: attributes },
        } as SubjectAccessReview)
      ).status?.allowed === true;
    while (!(await allowed())) {
      if (performance.now() > end) return t.fail('roles and bindings have no effect after 30 s');
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}

function clientOf<T extends KubeObject>(
  plane: ControlPlane,
  kind: KindDefinition<T>,
  namespace: string,
): ResourceClient<T> {
  const client = plane.client(kind);
  return namespace === '' ? client : client.namespace(namespace);
}

/** The roles and bindings that the API contains, the default ones included. */
async function graphOf(plane: ControlPlane): Promise<RoleGraph> {
  const [roles, clusterRoles, bindings, clusterBindings] = await Promise.all([
    plane.client(Role).list(),
    plane.client(ClusterRole).list(),
    plane.client(RoleBinding).list(),
    plane.client(ClusterRoleBinding).list(),
  ]);
  return {
    roles: [...roles.items, ...clusterRoles.items].map(({ metadata, rules = [] }) => ({
      ...{ namespace: metadata?.namespace ?? '', name: metadata?.name ?? '', rules },
    })),
    bindings: [...bindings.items, ...clusterBindings.items],
  };
}

/** The user that a request with impersonation headers has. */
function impersonated({ name, groups }: UserInfo): UserInfo {
  const namespace = /^system:serviceaccount:([^:]+):/.exec(name)?.[1];
  const own = namespace === undefined ? [] : ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
  const all = groups.length === 0 ? own : groups;
  return { name, groups: all.includes('system:authenticated') ? all : [...all, 'system:authenticated'] };
}

const methods: Readonly<Record<string, string>> = { get: 'GET', list: 'GET', create: 'POST', delete: 'DELETE' };

/** A random request, its user, and whether the model allows it. */
function randomRequest(random: Random, graph: RoleGraph) {
  for (;;) {
    const { attributes, user } = randomQuestion(random);
    const { verb, isResourceRequest, apiGroup, namespace, resource, subresource, name, path } = attributes;
    const method = methods[verb];
    if (method === undefined || (!isResourceRequest && verb !== 'get')) continue;
    // Lists and creates name no object in the path; single objects are in namespaces.
    const collection = verb === 'list' || verb === 'create';
    if (isResourceRequest && ((collection && subresource !== '') || (!collection && (name === '' || namespace === ''))))
      continue;
    if (verb === 'create' && name !== '') continue;
    const root = apiGroup === '' ? '/api/v1' : `/apis/${apiGroup}/v1`;
    const home = namespace === '' ? root : `${root}/namespaces/${namespace}`;
    const selected = name === '' ? '' : `?fieldSelector=metadata.name%3D${name}`;
    const single = `/${name}${subresource === '' ? '' : `/${subresource}`}`;
    const url = isResourceRequest ? `${home}/${resource}${collection ? selected : single}` : path;
    return { method, url, user, allowed: modelAllows(graph, attributes, impersonated(user)) };
  }
}

test(`${overHttp} random requests are refused with 403 exactly when the model refuses them`, async (t) => {
  const random = generator(seed);
  const plane = await createControlPlane();
  t.teardown(() => plane.close());
  await install(t, plane, randomGraph(random));
  const graph = await graphOf(plane);
  const { url } = await plane.listen();
  const agent = new Agent({ keepAlive: true, maxSockets: concurrent });
  t.teardown(() => agent.destroy());
  const statusOf = (method: string, path: string, { name, groups }: UserInfo) =>
    new Promise<{ code: number; text: string }>((resolve, reject) => {
      const headers = {
        'impersonate-user': name,
        ...(groups.length === 0 ? {} : { 'impersonate-group': [...groups] }),
      };
      const outgoing = request(url + path, { method, agent, headers }, (incoming) => {
        let text = '';
        incoming.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        incoming.on('end', () => resolve({ code: incoming.statusCode ?? 0, text }));
      });
      outgoing.on('error', reject);
      outgoing.end();
    });
  let left = overHttp;
  let allowed = 0;
  const work = async () => {
    while (left > 0) {
      left -= 1;
      const asked = randomRequest(random, graph);
      if (asked.allowed) allowed += 1;
      const { code, text } = await statusOf(asked.method, asked.url, asked.user);
      if ((code === 403) === asked.allowed || code === 401 || code >= 500)
        t.fail(`seed ${seed}: ${JSON.stringify(asked)} was answered with ${code} ${text}`);
    }
  };
  await Promise.all(Array.from({ length: concurrent }, work));
  t.true(allowed > overHttp / 20 && allowed < (overHttp * 19) / 20, `seed ${seed}: ${allowed} requests were allowed`);
});
