import {
  clientCases,
  resourceStorageCases,
  storeDependentClientCases,
  storeDependentResourceStorageCases,
} from '@keelson/conformance';
import test, { type TestFn } from 'ava';
import type { KubectlContext } from '../../src/kubectl-cluster.ts';
import { registerDeleteScenarios } from '../../src/scenarios/kubectl-delete.ts';
import { registerReadScenarios } from '../../src/scenarios/kubectl-read.ts';
import { registerWriteScenarios } from '../../src/scenarios/kubectl-write.ts';
import {
  embedded,
  everything,
  type Scope,
  storeDependentOnEtcd,
  storeDependentOnPostgres,
} from '../../src/scenarios/scope.ts';

function titlesOf(scope: Scope): string[] {
  const titles: string[] = [];
  const record = ((title: string) => titles.push(title)) as unknown as TestFn<KubectlContext>;
  registerReadScenarios(record, scope);
  registerWriteScenarios(record, scope);
  registerDeleteScenarios(record, scope);
  return titles;
}

const idsWithout = (all: readonly { readonly id: string }[], normal: readonly { readonly id: string }[]) =>
  all
    .filter((one) => !normal.includes(one))
    .map(({ id }) => id)
    .sort();

test('KEELSON_TEST_FULL adds exactly these scenarios of kubectl to those that run on etcd or PostgreSQL', (t) => {
  const [etcd, postgres] = [titlesOf(storeDependentOnEtcd), titlesOf(storeDependentOnPostgres)];
  const onBoth = etcd.filter((title) => postgres.includes(title));
  t.deepEqual(
    [etcd, postgres].map((titles) => titles.filter((title) => !onBoth.includes(title))),
    ['configmaps', 'deployments.extensions'].map((resource) => [
      `create, apply and replace work on ${resource}`,
      `patch, label, annotate and edit work on ${resource}`,
      `delete removes one of ${resource} and waits until it is gone`,
    ]),
  );
  const normal = [...new Set([...etcd, ...postgres])];
  t.deepEqual(
    titlesOf(everything).filter((title) => !normal.includes(title)),
    [
      'api-resources lists every kind of the specification with its short names, scope and verbs',
      'api-versions names every group version',
      'version reports a server version that kubectl can parse',
      'tables have the columns of Kubernetes',
      'explain describes kinds and nested fields of both groups',
      'an unknown resource, a missing object and an invalid name have different errors',
      'create, apply and replace work on events',
      'create, apply and replace work on secrets',
      'create, apply and replace work on services',
      'create, apply and replace work on daemonsets.extensions',
      'create, apply and replace work on ingresses.extensions',
      'create, apply and replace work on replicasets.extensions',
      'patch, label, annotate and edit work on events',
      'patch, label, annotate and edit work on secrets',
      'patch, label, annotate and edit work on services',
      'patch, label, annotate and edit work on daemonsets.extensions',
      'patch, label, annotate and edit work on ingresses.extensions',
      'patch, label, annotate and edit work on replicasets.extensions',
      'scale sets the replicas of deployments.extensions and respects --current-replicas',
      'scale sets the replicas of replicasets.apps and respects --current-replicas',
      'scale sets the replicas of replicasets.extensions and respects --current-replicas',
      'set image changes one container and keeps the others',
      'unknown fields are rejected by create and named in the message',
      'invalid manifests are rejected with every cause',
      'create --dry-run=server validates and stores nothing',
      'stringData of a Secret is stored as data and never returned',
      'delete removes one of events and waits until it is gone',
      'delete removes one of secrets and waits until it is gone',
      'delete removes one of services and waits until it is gone',
      'delete removes one of daemonsets.extensions and waits until it is gone',
      'delete removes one of ingresses.extensions and waits until it is gone',
      'delete removes one of replicasets.extensions and waits until it is gone',
    ],
  );
  t.deepEqual(
    normal.filter((title) => !titlesOf(everything).includes(title)),
    [],
  );
});

test('KEELSON_TEST_FULL adds exactly these scenarios of kubectl on LMDB', (t) => {
  const normal = titlesOf(embedded);
  t.deepEqual(
    titlesOf(everything).filter((title) => !normal.includes(title)),
    ['events', 'secrets', 'services', 'daemonsets.extensions', 'ingresses.extensions', 'replicasets.extensions'].map(
      (resource) => `patch, label, annotate and edit work on ${resource}`,
    ),
  );
});

test('KEELSON_TEST_FULL adds exactly these cases of ResourceStorage on etcd and PostgreSQL', (t) => {
  t.deepEqual(idsWithout(resourceStorageCases, storeDependentResourceStorageCases), [
    'bookmark.wakes',
    'cache.coalesced-probes',
    'cache.probe-after-request',
    'cache.reads-from-memory',
    'cache.shared-object',
    'create.aborted',
    'create.empty-metadata',
    'create.key-checked',
    'create.not-an-object',
    'delete.corrupt',
    'delete.same-final-state',
    'get.aborted',
    'get.corrupt',
    'get.own-copy',
    'list.bytes',
    'list.corrupt',
    'list.namespace-counts',
    'list.one-key',
    'list.representation',
    'list.same-value-again',
    'page.no-match',
    'page.rare',
    'page.remaining',
    'state.bookmark-form',
    'state.name',
    'state.namespace',
    'state.position',
    'state.selector',
    'update.aborted',
    'update.error-final',
    'update.no-op-length',
    'update.not-an-object',
    'watch.abort',
    'watch.callback-reader',
    'watch.close',
    'watch.close-waiting-iteration',
    'watch.cluster-scoped',
    'watch.corrupt',
    'watch.frames',
    'watch.idle-neighbours',
    'watch.iterate',
    'watch.many-selectors',
    'watch.name',
    'watch.namespace',
    'watch.readable',
    'watch.selector-transitions',
    'window.many-states',
  ]);
});

test('KEELSON_TEST_FULL adds exactly these cases of clients on LMDB, etcd and PostgreSQL', (t) => {
  t.deepEqual(idsWithout(clientCases, storeDependentClientCases), [
    'create.bad-name',
    'create.cluster-scoped',
    'create.dry-run',
    'create.generates-names',
    'create.ignores-what-only-the-server-says',
    'create.invalid-object',
    'create.missing-namespace',
    'create.objects-belong-to-the-caller',
    'create.refuses-another-namespace',
    'create.strict-field-validation',
    'create.takes-the-namespace-of-the-object',
    'create.warnings',
    'create.warns-of-unknown-fields',
    'create.wrong-type',
    'delete.answers-with-the-uid',
    'delete.contradicting-options',
    'delete.dry-run',
    'delete.finalizers-hold',
    'delete.preconditions',
    'delete.propagation',
    'discovery.other-versions',
    'discovery.rows',
    'discovery.shared-storage',
    'list.empty',
    'list.envelope',
    'list.field-selectors',
    'list.label-selectors',
    'list.one-or-all-namespaces',
    'page.bad-token',
    'page.limit-larger-than-the-list',
    'page.with-selector',
    'patch.apply',
    'patch.apply-conflict',
    'patch.dry-run',
    'patch.json',
    'patch.json-that-does-not-apply',
    'patch.merge',
    'patch.missing-object',
    'patch.precondition',
    'patch.strategic',
    'patch.strict-field-validation',
    'read.empty-name',
    'read.metadata-only',
    'read.missing-object',
    'read.missing-resource',
    'read.names-that-look-like-paths',
    'read.typed-and-by-name',
    'subresource.action',
    'subresource.missing',
    'subresource.projection',
    'subresource.projection-refuses',
    'subresource.status',
    'subresource.wrong-method',
    'update.dry-run',
    'update.in-the-objects-namespace',
    'update.invalid',
    'update.leaves-the-status',
    'update.missing-object',
    'update.nothing-changed',
    'update.other-uid',
    'update.without-version',
    'watch.abort',
    'watch.field-selector',
    'watch.label-selector',
    'watch.leaving-while-waiting',
    'watch.one-or-all-namespaces',
    'watch.refusals',
    'watch.time-out',
    'watch.twice',
  ]);
});
