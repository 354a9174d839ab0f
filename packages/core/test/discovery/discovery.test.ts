import test from 'ava';
import { aggregatedDiscoveryMediaType, apiGroupDiscoveryList } from '../../src/discovery/aggregated-discovery.ts';
import { apiGroup, apiGroupList, apiVersions } from '../../src/discovery/api-groups.ts';
import { apiResourceList, storageVersionHash } from '../../src/discovery/api-resource-list.ts';
import { defineKind } from '../../src/kind/define-kind.ts';
import { optional, s } from '../../src/kind/schema.ts';
import { appsDeployment, configMap, extensionsDeployment, pod, sampleKinds } from './sample-kinds.ts';

const address = 'localhost:6443';
const everywhere = [{ clientCIDR: '0.0.0.0/0', serverAddress: address }];

test('/api lists only the versions of the core group', (t) => {
  t.deepEqual(apiVersions(sampleKinds, address), {
    kind: 'APIVersions',
    versions: ['v1'],
    serverAddressByClientCIDRs: everywhere,
  });
  t.deepEqual(apiVersions([appsDeployment], address).versions, []);
});

test('/apis puts groups with a stable version before the others, so that a bare "deployments" means apps/v1', (t) => {
  const list = apiGroupList(sampleKinds, address);
  t.is(list.kind, 'APIGroupList');
  t.is(list.apiVersion, 'v1');
  t.deepEqual(
    list.groups.map(({ name }) => name),
    ['coordination.k8s.io', 'apps', 'stable.example.com', 'extensions'],
  );
  for (const group of list.groups) {
    t.deepEqual(group.serverAddressByClientCIDRs, everywhere, 'old clients need a list here');
    t.false('kind' in group);
  }
});

test('/apis/{group} shows versions in registration order and prefers the first', (t) => {
  const later = defineKind({
    group: 'apps',
    version: 'v2',
    kind: 'Deployment',
    schema: s.message('test.v2.Deployment', 'Later form.', { a: optional(2, s.string(), 'A.') }),
  });
  t.deepEqual(apiGroup([...sampleKinds, later], 'apps', address), {
    kind: 'APIGroup',
    apiVersion: 'v1',
    name: 'apps',
    versions: [
      { groupVersion: 'apps/v1', version: 'v1' },
      { groupVersion: 'apps/v2', version: 'v2' },
    ],
    preferredVersion: { groupVersion: 'apps/v1', version: 'v1' },
    serverAddressByClientCIDRs: everywhere,
  });
  t.is(apiGroup(sampleKinds, 'batch', address), undefined);
  t.is(apiGroup(sampleKinds, '', address), undefined);
  t.is(apiGroup(sampleKinds, '__proto__', address), undefined);
});

test('the core resource list has one row for each resource and subresource', (t) => {
  const list = apiResourceList(sampleKinds, { group: '', version: 'v1' });
  t.is(list?.groupVersion, 'v1');
  t.deepEqual(
    list?.resources.map(({ name, verbs }) => [name, verbs.join()]),
    [
      ['configmaps', 'create,delete,deletecollection,get,list,patch,update,watch'],
      ['namespaces', 'create,delete,get,list,patch,update,watch'],
      ['namespaces/finalize', 'update'],
      ['namespaces/status', 'get,patch,update'],
      ['pods', 'create,delete,deletecollection,get,list,patch,update,watch'],
      ['pods/binding', 'create'],
      ['pods/eviction', 'create'],
      ['pods/status', 'get,patch,update'],
    ],
  );
  const row = (name: string) => list?.resources.find((resource) => resource.name === name);
  t.deepEqual(row('configmaps'), {
    name: 'configmaps',
    singularName: 'configmap',
    namespaced: true,
    kind: 'ConfigMap',
    verbs: configMap.verbs,
    shortNames: ['cm'],
    storageVersionHash: storageVersionHash(configMap),
  });
  // `kubectl drain` finds evictions by group and version of this row.
  t.deepEqual(row('pods/eviction'), {
    name: 'pods/eviction',
    singularName: '',
    namespaced: true,
    group: 'policy',
    version: 'v1',
    kind: 'Eviction',
    verbs: ['create'],
  });
  t.deepEqual(row('pods/binding'), {
    name: 'pods/binding',
    singularName: '',
    namespaced: true,
    kind: 'Binding',
    verbs: ['create'],
  });
  t.false(row('namespaces/status')?.namespaced);
  t.is(row('namespaces/finalize')?.kind, 'Namespace');
  t.deepEqual(row('pods')?.categories, ['all']);
});

test('scale rows name the form of their Scale in every group', (t) => {
  const scaleOf = (group: string, version: string) => {
    const { resources = [] } = apiResourceList(sampleKinds, { group, version }) ?? {};
    const row = resources.find(({ name }) => name === 'deployments/scale');
    return [row?.group, row?.version, row?.kind];
  };
  t.deepEqual(scaleOf('apps', 'v1'), ['autoscaling', 'v1', 'Scale']);
  t.deepEqual(scaleOf('extensions', 'v1beta1'), ['extensions', 'v1beta1', 'Scale']);
});

test('a group version that is not served has no resource list', (t) => {
  t.is(apiResourceList(sampleKinds, { group: 'apps', version: 'v2' }), undefined);
  t.is(apiResourceList(sampleKinds, { group: 'batch', version: 'v1' }), undefined);
  t.is(apiResourceList([], { group: '', version: 'v1' }), undefined);
});

test('storage version hashes are those of the published servers and follow the stored kind', (t) => {
  t.is(storageVersionHash(pod), 'xPOwRZ+Yhw8=');
  t.is(storageVersionHash(appsDeployment), '8aSe+NMegvE=');
  t.is(storageVersionHash(extensionsDeployment), '8aSe+NMegvE=');
});

for (const version of ['v2', 'v2beta1'] as const) {
  test(`the aggregated form ${version} contains all resources, with the core group separate from the others`, (t) => {
    const core = apiGroupDiscoveryList(sampleKinds, 'core', version);
    const groups = apiGroupDiscoveryList(sampleKinds, 'groups', version);
    t.is(core.apiVersion, `apidiscovery.k8s.io/${version}`);
    t.deepEqual(
      core.items.map(({ metadata }) => metadata.name),
      [''],
    );
    t.deepEqual(
      groups.items.map(({ metadata }) => metadata.name),
      ['coordination.k8s.io', 'apps', 'stable.example.com', 'extensions'],
    );
    const [apps] = groups.items.filter(({ metadata }) => metadata.name === 'apps');
    t.deepEqual(apps?.versions, [
      {
        version: 'v1',
        freshness: 'Current',
        resources: [
          {
            resource: 'deployments',
            responseKind: { group: 'apps', version: 'v1', kind: 'Deployment' },
            scope: 'Namespaced',
            singularResource: 'deployment',
            verbs: appsDeployment.verbs,
            shortNames: ['deploy'],
            categories: ['all'],
            subresources: [
              {
                subresource: 'scale',
                responseKind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
                verbs: ['get', 'patch', 'update'],
              },
              {
                subresource: 'status',
                responseKind: { group: 'apps', version: 'v1', kind: 'Deployment' },
                verbs: ['get', 'patch', 'update'],
              },
            ],
          },
        ],
      },
    ]);
    t.is(core.items[0]?.versions[0]?.resources.find(({ resource }) => resource === 'namespaces')?.scope, 'Cluster');
    t.is(
      aggregatedDiscoveryMediaType(version),
      `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
    );
  });
}

test('plain and aggregated discovery offer the same resources and verbs', (t) => {
  const aggregated = (['core', 'groups'] as const).flatMap((part) =>
    apiGroupDiscoveryList(sampleKinds, part, 'v2').items.flatMap(({ metadata, versions }) =>
      versions.flatMap(({ version, resources }) =>
        resources.flatMap(({ resource, verbs, subresources = [] }) => [
          `${metadata.name}/${version}/${resource}:${verbs}`,
          ...subresources.map((sub) => `${metadata.name}/${version}/${resource}/${sub.subresource}:${sub.verbs}`),
        ]),
      ),
    ),
  );
  const groups = [{ name: '', versions: [{ version: 'v1' }] }, ...apiGroupList(sampleKinds, address).groups];
  const plain = groups.flatMap(({ name, versions }) =>
    versions.flatMap(({ version }) =>
      (apiResourceList(sampleKinds, { group: name, version })?.resources ?? []).map(
        (resource) => `${name}/${version}/${resource.name}:${resource.verbs}`,
      ),
    ),
  );
  t.deepEqual(plain.sort(), aggregated.sort());
  t.true(plain.length > 12);
});

test('of kinds in two groups that show the same objects the preferred one has the categories; short names are in every plain list', (t) => {
  const schema = s.message('example.v1.Thing', 'A thing.', {});
  const names = { shortNames: ['th'], categories: ['all'] };
  const stored = defineKind({ group: 'apps.example', version: 'v1', kind: 'Thing', schema, names });
  const twin = defineKind({
    group: 'old.example',
    version: 'v1beta1',
    kind: 'Thing',
    schema,
    names,
    storage: { kind: stored, toStorage: (object) => object, fromStorage: (object) => object, isRelabel: () => true },
  });
  const plain = (kinds: readonly (typeof stored)[], group: string, version: string) => {
    const { shortNames, categories } = apiResourceList(kinds, { group, version })?.resources[0] ?? {};
    return [shortNames, categories];
  };
  t.deepEqual(plain([stored, twin], 'apps.example', 'v1'), [['th'], ['all']]);
  t.deepEqual(plain([stored, twin], 'old.example', 'v1beta1'), [['th'], undefined]);
  t.deepEqual(plain([twin], 'old.example', 'v1beta1'), [['th'], ['all']]);
  const rows = apiGroupDiscoveryList([stored, twin], 'groups', 'v2').items.map(
    ({ versions }) => versions[0]?.resources[0],
  );
  t.deepEqual(
    rows.map((row) => [row?.shortNames, row?.categories]),
    [
      [['th'], ['all']],
      [undefined, undefined],
    ],
    'kubectl warns about a short name that two groups have',
  );
});
