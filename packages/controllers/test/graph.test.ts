import type { ApiClient, DiscoveredResource, KubeObject, OwnerReference } from '@keelson/core';
import { systemClock } from '@keelson/core/runtime';
import { ConfigMap } from '@keelson/kinds';
import test from 'ava';
import { type ClassifiedOwners, classifyOwners } from '../src/garbage/classify-owners.ts';
import { listDependents } from '../src/garbage/list-dependents.ts';
import { nodeOf, ObjectGraph, type ObjectNode } from '../src/garbage/object-graph.ts';
import { VerifiedOwners } from '../src/garbage/verified-owners.ts';
import { distinctResources, ResourceMap } from '../src/resource-map.ts';
import { startTestPlane } from './support/test-plane.ts';

const maps: DiscoveredResource = {
  group: '',
  version: 'v1',
  resource: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
  verbs: ['delete', 'get', 'list', 'watch'],
  storage: { group: '', resource: 'configmaps' },
} as unknown as DiscoveredResource;

function reference(uid: string, blockOwnerDeletion = false): OwnerReference {
  return { apiVersion: 'v1', kind: 'ConfigMap', name: uid, uid, blockOwnerDeletion };
}

function node(uid: string, owners: readonly OwnerReference[] = [], foreground = false): ObjectNode {
  const metadata = {
    name: uid,
    namespace: 'default',
    uid,
    ownerReferences: owners,
    ...(foreground ? { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['foregroundDeletion'] } : {}),
  };
  return nodeOf(maps, { metadata } as KubeObject) as ObjectNode;
}

const uids = (nodes: readonly ObjectNode[]) => nodes.map(({ uid }) => uid).sort();

test('the graph follows changes of owner references and removals', (t) => {
  const graph = new ObjectGraph();
  graph.put(node('a', [reference('x')]));
  graph.put(node('b', [reference('x'), reference('y')]));
  t.deepEqual(uids(graph.dependents('x')), ['a', 'b']);
  graph.put(node('b', [reference('y')]));
  t.deepEqual(uids(graph.dependents('x')), ['a']);
  t.deepEqual(uids(graph.dependents('y')), ['b']);
  t.is(graph.remove('b')?.uid, 'b');
  t.deepEqual(graph.dependents('y'), []);
  t.is(graph.remove('b'), undefined);
  t.is(graph.size, 1);
});

test('only foreground deletions wait for a dependent, and only through references that block', (t) => {
  const graph = new ObjectGraph();
  graph.put(node('top', [], true));
  graph.put(node('middle', [reference('top', true)], true));
  graph.put(node('loose', [reference('top', true)], true));
  graph.put(node('stays', [reference('top', true)]));
  const leaf = node('leaf', [reference('middle', true), reference('loose'), reference('stays', true)]);
  graph.put(leaf);
  t.deepEqual([...graph.waitingOwners(leaf)].sort(), ['middle', 'top']);
});

test('an object that has no uid, or is neither owned nor deleted, is not in the graph', (t) => {
  t.is(nodeOf(maps, { metadata: { name: 'a' } }), undefined);
  t.like(node('a'), { deleting: false, foreground: false, orphaning: false });
  const orphaning = { uid: 'a', deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['orphan'] };
  t.like(nodeOf(maps, { metadata: orphaning }), { deleting: true, foreground: false, orphaning: true });
  t.like(nodeOf(maps, { metadata: { uid: 'a', finalizers: ['orphan'] } }), { deleting: false, orphaning: false });
});

const found = (...seen: string[]): ClassifiedOwners => ({
  seen: seen.map((uid) => ({ reference: reference(uid), namespace: 'default' })),
  misplaced: [],
  solid: [],
  dangling: [],
  waiting: [],
});

const has = (owners: VerifiedOwners, uid: string) => owners.has(reference(uid), 'default');

test('an owner is verified until its deletion is observed, or deletions may have been missed', async (t) => {
  const owners = new VerifiedOwners();
  await owners.during(async () => found('a', 'b'));
  t.true(has(owners, 'a'));
  owners.gone('a', false);
  t.false(has(owners, 'a'));
  t.true(has(owners, 'b'));
  owners.clear();
  t.false(has(owners, 'b'));
});

test('an owner is verified only for references with its name and kind, in its namespace', async (t) => {
  const owners = new VerifiedOwners();
  await owners.during(async () => found('a'));
  t.false(owners.has({ ...reference('a'), name: 'b' }, 'default'));
  t.false(owners.has({ ...reference('a'), kind: 'Secret' }, 'default'));
  t.false(owners.has(reference('a'), 'other'));
  t.false(owners.has(reference('a'), undefined));
  const seen = [{ reference: reference('b'), namespace: undefined }];
  await owners.during(async () => ({ ...found(), seen }));
  t.true(owners.has(reference('b'), 'other') && owners.has(reference('b'), undefined), 'a cluster-scoped owner');
});

test('the last 500 deleted owners with dependents are remembered', (t) => {
  const owners = new VerifiedOwners();
  owners.gone('alone', false);
  for (let i = 0; i <= 500; i += 1) owners.gone(`u${i}`, true);
  t.deepEqual(
    ['alone', 'u0', 'u1', 'u500'].map((uid) => owners.isGone(uid)),
    [false, false, true, true],
  );
});

test('a result that is older than a deletion does not verify the owner', async (t) => {
  const owners = new VerifiedOwners();
  await owners.during(async () => {
    owners.gone('a', false);
    return found('a', 'b');
  });
  t.false(has(owners, 'a'));
  t.true(has(owners, 'b'));
  await owners.during(async () => found('a'));
  t.true(has(owners, 'a'), 'a later result verifies it');
  await owners.during(async () => {
    owners.clear();
    return found('c');
  });
  t.false(has(owners, 'c'));
});

test('dependents are listed page by page, in the namespace of the owner', async (t) => {
  const calls: unknown[] = [];
  const pages = [[node('a', [reference('x')]), node('b')], [node('c', [reference('x')])]];
  const list = async (options: { readonly continue?: string }) => {
    calls.push(options.continue);
    const page = options.continue === undefined ? 0 : 1;
    const items = (pages[page] ?? []).map(({ uid, owners }) => ({
      metadata: { name: uid, namespace: 'default', uid, ownerReferences: owners },
    }));
    return { items, metadata: { continue: page === 0 ? 'next' : '' } };
  };
  const namespaces: string[] = [];
  const namespace = (name: string) => {
    namespaces.push(name);
    return { list };
  };
  const client = { dynamic: () => ({ namespace }) } as unknown as ApiClient;
  const clusterScoped = { ...maps, resource: 'nodes', namespaced: false };
  t.deepEqual(await listDependents(client, clusterScoped, node('x')), []);
  t.deepEqual(uids(await listDependents(client, maps, node('x'))), ['a', 'c']);
  t.deepEqual(calls, [undefined, 'next']);
  t.deepEqual(namespaces, ['default']);
});

test('owners are classified by what the server returns', async (t) => {
  const plane = await startTestPlane({ controllers: false });
  t.teardown(() => plane.close());
  const client = plane.client(ConfigMap).namespace('default');
  const solid = await client.create({ metadata: { name: 'solid' } });
  const waiting = await client.create({ metadata: { name: 'waiting' } });
  await client.delete('waiting', { propagationPolicy: 'Foreground' });
  const background = await client.create({ metadata: { name: 'held', finalizers: ['example.com/hold'] } });
  await client.delete('held');
  const owner = (name: string, uid = '', more: Partial<OwnerReference> = {}): OwnerReference => ({
    ...{ apiVersion: 'v1', kind: 'ConfigMap', name, uid },
    ...more,
  });
  const owners = [
    owner('solid', solid.metadata?.uid),
    owner('held', background.metadata?.uid),
    owner('waiting', waiting.metadata?.uid),
    owner('solid', 'another-uid'),
    owner('missing', 'x'),
    owner('unknown', 'y', { apiVersion: 'example.com/v1', kind: 'Boat' }),
  ];
  const resources = new ResourceMap(plane.api, systemClock);
  const names = (references: readonly OwnerReference[]) => references.map(({ name, uid }) => `${name} ${uid}`).sort();
  const classified = await classifyOwners(plane.api, resources, node('x'), owners);
  t.deepEqual(names(classified.seen.map((seen) => seen.reference)), names(owners.slice(0, 2)));
  t.deepEqual(names(classified.misplaced.map((misplaced) => misplaced.reference)), names(owners.slice(3, 5)));
  t.deepEqual(names(classified.waiting), names(owners.slice(2, 3)));
  t.deepEqual(names(classified.dangling), names(owners.slice(3, 5)));
  t.deepEqual(names(classified.solid), names([...owners.slice(0, 2), ...owners.slice(5)]));
  const cluster = { ...node('x'), namespace: undefined };
  const unknowable = await classifyOwners(plane.api, resources, cluster, [owner('missing', 'x')]);
  t.is(unknowable.solid.length, 1, 'a namespaced owner of a cluster-scoped object cannot be found');
  const namespaceOwner = { apiVersion: 'v1', kind: 'Namespace', name: 'default', uid: 'x' };
  t.is((await classifyOwners(plane.api, resources, cluster, [namespaceOwner])).dangling.length, 1);
});

test('of several versions of the same storage the first is used', (t) => {
  const old = { ...maps, group: 'old', storage: maps.storage };
  const other = { ...maps, resource: 'secrets', storage: { group: '', resource: 'secrets' } };
  t.deepEqual(distinctResources([maps, old, other]), [maps, other]);
});

test('the resource map is loaded again after thirty seconds, and for an unknown kind', async (t) => {
  const plane = await startTestPlane({ fakeClock: true, controllers: false });
  t.teardown(() => plane.close());
  let loads = 0;
  let served: readonly DiscoveredResource[] = [];
  const client = {
    discover: async () => {
      loads += 1;
      return served;
    },
  } as unknown as ApiClient;
  const { clock = systemClock } = plane;
  const resources = new ResourceMap(client, clock);
  t.is(await resources.find('v1', 'ConfigMap'), undefined);
  t.is(loads, 2, 'once for the first use and once for the unknown kind');
  served = [maps, { ...maps, group: 'apps', kind: 'Deployment', resource: 'deployments' }];
  t.is((await resources.find('v1', 'ConfigMap'))?.resource, 'configmaps');
  t.is(loads, 3);
  t.is((await resources.find('apps/v1', 'Deployment'))?.resource, 'deployments');
  plane.clock?.advance(29_999);
  await resources.all();
  t.is(loads, 3);
  plane.clock?.advance(1);
  await resources.all();
  t.is(loads, 4);
});
