import type { ApiClient, DiscoveredResource } from '@keelson/core';
import test from 'ava';
import { emptyNamespace } from '../src/namespace/empty-namespace.ts';
import { terminationConditions } from '../src/namespace/termination-conditions.ts';

function resource(name: string, more: Partial<DiscoveredResource> = {}): DiscoveredResource {
  return {
    ...{ group: '', version: 'v1', resource: name, kind: name, namespaced: true },
    verbs: ['delete', 'list', 'watch'],
    storage: { group: '', resource: name },
    ...more,
  } as unknown as DiscoveredResource;
}

type Item = { readonly metadata: { readonly finalizers?: readonly string[] } };

/** A client whose collections hold the given items; a deleteCollection deletes `perCall` items without finalizers. */
function clientOf(contents: Readonly<Record<string, Item[] | Error>>, perCall = 2) {
  const deletions: string[] = [];
  const client = {
    dynamic: ({ resource: name }: DiscoveredResource) => ({
      namespace: () => ({
        list: async ({ limit }: { readonly limit?: number }) => {
          const items = contents[name] ?? [];
          if (items instanceof Error) throw items;
          return { items: limit === undefined ? [...items] : items.slice(0, limit), metadata: {} };
        },
        deleteCollection: async (options: { readonly continue?: string; readonly propagationPolicy: string }) => {
          deletions.push(`${name} ${options.propagationPolicy} ${options.continue ?? 'first'}`);
          const items = contents[name] as Item[];
          const deleted = items.filter(({ metadata }) => metadata.finalizers === undefined).slice(0, perCall);
          for (const item of deleted) items.splice(items.indexOf(item), 1);
          const rest = items.some(({ metadata }) => metadata.finalizers === undefined);
          return { items: deleted, metadata: { continue: rest ? 'more' : '' } };
        },
      }),
    }),
  };
  return { client: client as unknown as ApiClient, deletions };
}

const { signal } = new AbortController();
const item = (...finalizers: string[]): Item => ({ metadata: finalizers.length === 0 ? {} : { finalizers } });

test('collections are deleted in pages until they are empty', async (t) => {
  const { client, deletions } = clientOf({ configmaps: [item(), item(), item()], secrets: [] });
  const emptied = await emptyNamespace(client, [resource('configmaps'), resource('secrets')], 'n', signal);
  t.deepEqual(emptied, { remaining: [], failures: [] });
  t.deepEqual(deletions, ['configmaps Background first', 'configmaps Background more']);
});

test('remaining objects are counted with their finalizers, and failures do not stop the others', async (t) => {
  const { client } = clientOf({
    configmaps: new Error('no connection'),
    deployments: [item('a', 'b'), item('a'), item()],
  });
  const deployments = resource('deployments', { group: 'apps' });
  const emptied = await emptyNamespace(client, [resource('configmaps'), deployments], 'n', signal);
  t.deepEqual(emptied.failures, ['no connection']);
  t.deepEqual(emptied.remaining, [{ resource: 'deployments.apps', count: 2, finalizers: { a: 2, b: 1 } }]);
});

test('other objects are deleted only after the pods have ended', async (t) => {
  const contents = { configmaps: [item()], pods: [item('held')] };
  const { client, deletions } = clientOf(contents);
  const resources = [resource('configmaps'), resource('pods')];
  const waiting = await emptyNamespace(client, resources, 'n', signal);
  t.deepEqual(waiting.remaining, [{ resource: 'pods.', count: 1, finalizers: { held: 1 } }]);
  t.deepEqual(deletions, ['pods Background first']);
  contents.pods = [];
  t.deepEqual(await emptyNamespace(client, resources, 'n', signal), { remaining: [], failures: [] });
  t.deepEqual(deletions, ['pods Background first', 'configmaps Background first']);
});

test('other objects are not deleted while it is unknown whether pods remain', async (t) => {
  const { client, deletions } = clientOf({ configmaps: [item()], pods: new Error('no connection') });
  const emptied = await emptyNamespace(client, [resource('configmaps'), resource('pods')], 'n', signal);
  t.deepEqual(emptied, { remaining: [], failures: ['no connection'] });
  t.deepEqual(deletions, []);
});

test('cluster-scoped resources and those that cannot be deleted are not touched', async (t) => {
  const { client, deletions } = clientOf({ nodes: [item()], bindings: [item()] });
  const nodes = resource('nodes', { namespaced: false });
  await emptyNamespace(client, [nodes, resource('bindings', { verbs: ['create'] })], 'n', signal);
  t.deepEqual(deletions, []);
});

test('an aborted run fails instead of reporting a failure', async (t) => {
  const { client } = clientOf({ configmaps: new Error('aborted') });
  const aborted = AbortSignal.abort();
  await t.throwsAsync(emptyNamespace(client, [resource('configmaps')], 'n', aborted), { message: 'aborted' });
});

test('the conditions of a namespace state what remains', (t) => {
  const conditions = terminationConditions(
    {
      remaining: [
        { resource: 'secrets.', count: 1, finalizers: { b: 1, a: 1 } },
        { resource: 'deployments.apps', count: 3, finalizers: { a: 2 } },
      ],
      failures: ['timeout', 'forbidden'],
    },
    ['b.io/v1', 'a.io/v1'],
  );
  t.deepEqual(
    conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`),
    [
      'NamespaceDeletionDiscoveryFailure True DiscoveryFailed',
      'NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions',
      'NamespaceDeletionContentFailure True ContentDeletionFailed',
      'NamespaceContentRemaining True SomeResourcesRemain',
      'NamespaceFinalizersRemaining True SomeFinalizersRemain',
    ],
  );
  t.deepEqual(
    conditions.map(({ message }) => message),
    [
      'Discovery failed for some groups, 2 failing: unable to retrieve the complete list of server APIs: ' +
        'a.io/v1: stale GroupVersion discovery: a.io/v1, b.io/v1: stale GroupVersion discovery: b.io/v1',
      'All legacy kube types successfully parsed',
      'Failed to delete all resource types, 2 remaining: forbidden, timeout',
      'Some resources are remaining: deployments.apps has 3 resource instances, secrets. has 1 resource instances',
      'Some content in the namespace has finalizers remaining: a in 3 resource instances, b in 1 resource instances',
    ],
  );
});

test('the conditions of an empty namespace are false, with the messages of Kubernetes', (t) => {
  const rows = terminationConditions({ remaining: [], failures: [] }, []).map(
    ({ type, status, reason, message }) => `${type} ${status} ${reason}: ${message}`,
  );
  t.deepEqual(rows, [
    'NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully discovered',
    'NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types successfully parsed',
    'NamespaceDeletionContentFailure False ContentDeleted: All content successfully deleted, may be waiting on finalization',
    'NamespaceContentRemaining False ContentRemoved: All content successfully removed',
    'NamespaceFinalizersRemaining False ContentHasNoFinalizers: All content-preserving finalizers finished',
  ]);
});
