import { createHash } from 'node:crypto';
import test from 'ava';
import { defineKind } from '../../src/kind/define-kind.ts';
import type { KindDefinition } from '../../src/kind/kind-definition.ts';
import { optional, s } from '../../src/kind/schema.ts';
import { openApiV3Document, openApiV3Index } from '../../src/openapi/open-api-document.ts';
import { OpenApiDocuments } from '../../src/openapi/open-api-documents.ts';
import type { OpenApiDocument, OpenApiOperation, OpenApiPathItem } from '../../src/openapi/open-api-types.ts';
import { operationId } from '../../src/openapi/operation-id.ts';
import {
  appsDeployment,
  configMap,
  cronTab,
  extensionsDeployment,
  lease,
  namespace,
  pod,
  sampleKinds,
} from '../discovery/sample-kinds.ts';

const methods = ['get', 'put', 'post', 'patch', 'delete'] as const;
const core = openApiV3Document({ group: '', version: 'v1' }, sampleKinds);
const everyDocument = sampleKinds.map((kind) => openApiV3Document(kind, sampleKinds));

function operationsOf(item: OpenApiPathItem | undefined): OpenApiOperation[] {
  return methods.flatMap((method) => item?.[method] ?? []);
}

function idsAt(document: OpenApiDocument, path: string): Record<string, string | undefined> {
  const item = document.paths[path];
  return Object.fromEntries(methods.flatMap((method) => (item?.[method] ? [[method, item[method].operationId]] : [])));
}

function referencesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === '$ref' && typeof inner === 'string' ? [inner] : referencesIn(inner),
  );
}

test('a namespaced kind has every path and operation under its published id', (t) => {
  const collection = '/api/v1/namespaces/{namespace}/pods';
  t.deepEqual(idsAt(core, collection), {
    get: 'listCoreV1NamespacedPod',
    post: 'createCoreV1NamespacedPod',
    delete: 'deleteCoreV1CollectionNamespacedPod',
  });
  t.deepEqual(idsAt(core, `${collection}/{name}`), {
    get: 'readCoreV1NamespacedPod',
    put: 'replaceCoreV1NamespacedPod',
    patch: 'patchCoreV1NamespacedPod',
    delete: 'deleteCoreV1NamespacedPod',
  });
  t.deepEqual(idsAt(core, `${collection}/{name}/status`), {
    get: 'readCoreV1NamespacedPodStatus',
    put: 'replaceCoreV1NamespacedPodStatus',
    patch: 'patchCoreV1NamespacedPodStatus',
  });
  t.deepEqual(idsAt(core, `${collection}/{name}/binding`), { post: 'createCoreV1NamespacedPodBinding' });
  t.deepEqual(idsAt(core, `${collection}/{name}/eviction`), { post: 'createCoreV1NamespacedPodEviction' });
  t.deepEqual(idsAt(core, '/api/v1/pods'), { get: 'listCoreV1PodForAllNamespaces' });
  t.deepEqual(idsAt(core, '/api/v1/watch/pods'), { get: 'watchCoreV1PodListForAllNamespaces' });
  t.deepEqual(idsAt(core, '/api/v1/watch/namespaces/{namespace}/pods'), { get: 'watchCoreV1NamespacedPodList' });
  t.deepEqual(idsAt(core, '/api/v1/watch/namespaces/{namespace}/pods/{name}'), { get: 'watchCoreV1NamespacedPod' });
  t.deepEqual(idsAt(core, '/api/v1/'), { get: 'getCoreV1APIResources' });
});

test('a cluster-scoped kind has no namespace in paths and ids, and only the operations of its verbs', (t) => {
  t.deepEqual(idsAt(core, '/api/v1/namespaces'), { get: 'listCoreV1Namespace', post: 'createCoreV1Namespace' });
  t.deepEqual(idsAt(core, '/api/v1/namespaces/{name}/finalize'), { put: 'replaceCoreV1NamespaceFinalize' });
  t.deepEqual(idsAt(core, '/api/v1/watch/namespaces'), { get: 'watchCoreV1NamespaceList' });
  t.deepEqual(idsAt(core, '/api/v1/watch/namespaces/{name}'), { get: 'watchCoreV1Namespace' });
  const parameters = core.paths['/api/v1/namespaces/{name}']?.parameters?.map(({ name }) => name);
  t.deepEqual(parameters, ['name', 'pretty']);
});

test('ids are unique in each document and spell groups as published', (t) => {
  for (const document of everyDocument) {
    const ids = Object.values(document.paths).flatMap((item) =>
      operationsOf(item).map((operation) => operation.operationId),
    );
    t.is(new Set(ids).size, ids.length);
  }
  const subject = { version: 'v1', kind: 'ClusterRole', namespaced: false };
  t.is(operationId('list', { group: 'rbac.authorization.k8s.io', ...subject }), 'listRbacAuthorizationV1ClusterRole');
  t.is(operationId('list', { group: 'coordination.k8s.io', ...subject }), 'listCoordinationV1ClusterRole');
  t.is(operationId('read', { group: 'stable.example-site.com', ...subject }), 'readStableExampleSiteComV1ClusterRole');
  t.deepEqual(everyDocument[0]?.paths['/apis/stable.example.com/v1alpha1/crontabs']?.get?.tags, [
    'stableExampleCom_v1alpha1',
  ]);
});

test('kubectl finds on PATCH operations the kind, fieldValidation and the patch types', (t) => {
  for (const [i, kind] of sampleKinds.entries()) {
    const patches = Object.values(everyDocument[i]!.paths).flatMap(({ patch }) => patch ?? []);
    const ofKind = patches.filter((patch) => patch['x-kubernetes-group-version-kind']?.kind === kind.kind);
    t.true(ofKind.length > 0);
    for (const patch of ofKind) {
      t.deepEqual(patch['x-kubernetes-group-version-kind'], {
        group: kind.group,
        version: kind.version,
        kind: kind.kind,
      });
      const names = patch.parameters?.map((parameter) => `${parameter.in}:${parameter.name}`) ?? [];
      for (const name of ['dryRun', 'fieldManager', 'fieldValidation', 'force'])
        t.true(names.includes(`query:${name}`));
      const types = Object.keys(patch.requestBody?.content ?? {});
      t.true(types.includes('application/json-patch+json'));
      t.true(types.includes('application/merge-patch+json'));
      t.is(types.includes('application/strategic-merge-patch+json'), kind.structural);
    }
  }
});

test('subresources with bodies of their own carry the kind of the body', (t) => {
  const [apps, extensions] = [appsDeployment, extensionsDeployment].map((kind) => openApiV3Document(kind, sampleKinds));
  const scale = apps?.paths['/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale'];
  t.deepEqual(scale?.put?.['x-kubernetes-group-version-kind'], { group: 'autoscaling', version: 'v1', kind: 'Scale' });
  t.is(scale?.get?.operationId, 'readAppsV1NamespacedDeploymentScale');
  const rollback = extensions?.paths['/apis/extensions/v1beta1/namespaces/{namespace}/deployments/{name}/rollback'];
  t.is(rollback?.post?.operationId, 'createExtensionsV1beta1NamespacedDeploymentRollback');
  t.is(rollback?.post?.['x-kubernetes-group-version-kind']?.kind, 'DeploymentRollback');
  t.deepEqual(Object.keys(rollback ?? {}).sort(), ['parameters', 'post']);
});

test('every operation names its action, and every path variable is declared', (t) => {
  const actions = new Set<string>();
  for (const document of everyDocument) {
    for (const [path, item] of Object.entries(document.paths)) {
      const variables = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const declared = (item.parameters ?? []).filter((parameter) => parameter.in === 'path').map(({ name }) => name);
      t.deepEqual([...declared].sort(), variables.sort(), path);
      for (const operation of operationsOf(item)) {
        const query = (operation.parameters ?? []).map(({ name }) => name);
        t.is(new Set(query).size, query.length, operation.operationId);
        if (!path.endsWith('/')) t.truthy(operation['x-kubernetes-action'], operation.operationId);
        actions.add(operation['x-kubernetes-action'] ?? '');
      }
    }
  }
  actions.delete('');
  t.deepEqual([...actions].sort(), [
    'delete',
    'deletecollection',
    'get',
    'list',
    'patch',
    'post',
    'put',
    'watch',
    'watchlist',
  ]);
});

test('lists and deletes have the parameters of the API, and deletes return the response of the kind', (t) => {
  const names = (operation: OpenApiOperation | undefined) => operation?.parameters?.map(({ name }) => name) ?? [];
  const list = core.paths['/api/v1/pods']?.get;
  for (const name of [
    ...['allowWatchBookmarks', 'continue', 'fieldSelector', 'labelSelector', 'limit', 'resourceVersion'],
    ...['resourceVersionMatch', 'sendInitialEvents', 'timeoutSeconds', 'watch'],
  ]) {
    t.true(names(list).includes(name), name);
  }
  t.true(Object.keys(list?.responses['200']?.content ?? {}).includes('application/json;stream=watch'));
  const answerOf = (path: string) =>
    JSON.stringify(core.paths[path]?.delete?.responses['200']?.content?.['application/json']?.schema);
  t.regex(answerOf('/api/v1/namespaces/{namespace}/configmaps/{name}'), /meta\.v1\.Status"/);
  t.notRegex(answerOf('/api/v1/namespaces/{namespace}/pods/{name}'), /meta\.v1\.Status"/);
  const remove = core.paths['/api/v1/namespaces/{namespace}/configmaps']?.delete;
  t.deepEqual(
    names(remove).filter((name) =>
      ['gracePeriodSeconds', 'labelSelector', 'propagationPolicy', 'watch'].includes(name),
    ),
    ['gracePeriodSeconds', 'propagationPolicy', 'labelSelector'],
  );
});

test('every reference in every document leads to a schema of the same document', (t) => {
  for (const document of everyDocument) {
    const wanted = new Set(referencesIn(document));
    t.true(wanted.size > 5);
    for (const reference of wanted) {
      const [, name = ''] = /^#\/components\/schemas\/(.+)$/.exec(reference) ?? [];
      t.truthy(document.components.schemas[name], reference);
    }
  }
});

test('each kind, list and body has one schema that names it, with complete metadata', (t) => {
  for (const [i, kind] of sampleKinds.entries()) {
    const schemas = Object.values(everyDocument[i]!.components.schemas);
    const named = (group: string, version: string, word: string) =>
      schemas.filter((schema) => {
        return schema['x-kubernetes-group-version-kind']?.some(
          (gvk) => gvk.group === group && gvk.version === version && gvk.kind === word,
        );
      });
    const [schema, ...others] = named(kind.group, kind.version, kind.kind);
    t.deepEqual(others, []);
    const [metadata = ''] = referencesIn(schema?.properties?.['metadata']);
    const meta = everyDocument[i]!.components.schemas[metadata.replace('#/components/schemas/', '')];
    for (const name of ['name', 'namespace', 'labels', 'annotations', 'finalizers', 'ownerReferences']) {
      t.truthy(meta?.properties?.[name], `${kind.kind} ${name}`);
    }
    t.is(named(kind.group, kind.version, kind.listKind).length, 1, kind.listKind);
    t.is(named('', 'v1', 'Status').length, 1);
    t.is(named(kind.group, kind.version, 'DeleteOptions').length, 1);
  }
});

test('documents are built once, named by their content and rebuilt only when their own kinds change', (t) => {
  let kinds: KindDefinition[] = [configMap, pod, namespace, appsDeployment];
  const source = { generation: 1, kinds: () => kinds };
  const documents = new OpenApiDocuments(source, { title: 'Test', version: '1' });
  const [before, apps, index] = [documents.document('api/v1'), documents.document('apis/apps/v1'), documents.index()];
  t.is(documents.document('api/v1'), before);
  t.is(documents.index(), index);
  const paths = JSON.parse(index.bytes.toString()).paths as Record<string, { serverRelativeURL: string }>;
  t.deepEqual(Object.keys(paths), ['api/v1', 'apis/apps/v1']);
  t.is(paths['api/v1']?.serverRelativeURL, `/openapi/v3/api/v1?hash=${before?.hash}`);
  t.is(before?.hash, createHash('sha256').update(before!.bytes).digest('hex').toUpperCase());
  t.is(JSON.parse(before!.bytes.toString()).info.title, 'Test');

  const added = defineKind({
    group: 'apps',
    version: 'v1',
    kind: 'Widget',
    schema: s.message('test.v1.Widget', 'A widget.', { size: optional(2, s.int32(), 'Its size.') }),
  });
  kinds = [...kinds, added, lease];
  t.is(documents.index(), index, 'the generation follows changes');
  source.generation++;
  t.is(documents.document('api/v1'), before);
  t.not(documents.document('apis/apps/v1')?.hash, apps?.hash);
  t.truthy(documents.document('apis/coordination.k8s.io/v1'));
  t.not(documents.index().hash, index.hash);

  kinds = [configMap, pod, namespace, appsDeployment];
  source.generation++;
  t.is(documents.document('apis/coordination.k8s.io/v1'), undefined);
  t.is(documents.document('apis/apps/v1')?.hash, apps?.hash, 'equal content has an equal hash');
  for (const path of ['', 'api', 'apis/apps', 'apis/apps/v1/', '__proto__', 'constructor']) {
    t.is(documents.document(path), undefined, path);
  }
});

test('without groups the index is empty', (t) => {
  t.deepEqual(openApiV3Index([]), { paths: {} });
  t.deepEqual(openApiV3Index([[{ group: 'apps', version: 'v1' }, 'AB']]), {
    paths: { 'apis/apps/v1': { serverRelativeURL: '/openapi/v3/apis/apps/v1?hash=AB' } },
  });
});

test('kinds without struct schema are documented too', (t) => {
  const document = openApiV3Document(cronTab, sampleKinds);
  const names = Object.keys(document.components.schemas);
  t.true(names.some((name) => name.endsWith('CronTab')));
  t.true(names.some((name) => name.endsWith('CronTabList')));
  t.false(names.some((name) => name.includes('Deployment')));
});

test('answers are named in every form they have: protobuf for kinds with field numbers, streams for lists and watches', (t) => {
  const answered = (document: OpenApiDocument, path: string, method: (typeof methods)[number] = 'get') =>
    Object.keys(document.paths[path]?.[method]?.responses['200']?.content ?? {});
  const [json, yaml, protobuf] = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'];
  const objects = [json, yaml, protobuf];
  const streams = [...objects, `${json};stream=watch`, `${protobuf};stream=watch`];
  const maps = '/api/v1/namespaces/{namespace}/configmaps';
  t.deepEqual(answered(core, '/api/v1/'), objects);
  for (const path of [maps, '/api/v1/configmaps', '/api/v1/watch/configmaps'])
    t.deepEqual(answered(core, path), streams);
  t.deepEqual(answered(core, maps, 'post'), objects);
  t.deepEqual(answered(core, maps, 'delete'), objects);
  for (const method of methods) {
    if (method !== 'post') t.deepEqual(answered(core, `${maps}/{name}`, method), objects, method);
  }
  t.deepEqual(Object.keys(core.paths[maps]?.post?.requestBody?.content ?? {}), ['*/*']);
  const free = openApiV3Document(cronTab, sampleKinds);
  const crons = '/apis/stable.example.com/v1alpha1/crontabs';
  t.deepEqual(answered(free, crons), [json, yaml, `${json};stream=watch`]);
  t.deepEqual(answered(free, crons, 'post'), [json, yaml]);
  const branded = openApiV3Document(configMap, sampleKinds, undefined, { vendor: 'acme', metaGroup: 'meta.acme.io' });
  t.true(answered(branded, maps).includes('application/vnd.acme.protobuf;stream=watch'));
});
