import type { ExecutionContext, TestFn } from 'ava';
import { type KubectlContext, namespaceFor } from '../kubectl-cluster.ts';
import { guestbookIn, manifestsOf } from '../manifests.ts';

/** A Deployment and a ReplicaSet owned by it. */
async function ownedPair(t: ExecutionContext<KubectlContext>, namespace: string): Promise<void> {
  const { kubectl } = t.context;
  const api = `/apis/extensions/v1beta1/namespaces/${namespace}`;
  const owner = manifestsOf('owner')['deployments.extensions'] ?? {};
  const { uid } = (await kubectl.post<{ metadata: { uid: string } }>(`${api}/deployments`, owner)).metadata;
  const child = {
    ...manifestsOf('owned')['replicasets.extensions'],
    metadata: {
      name: 'owned',
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'Deployment', name: 'owner', uid, controller: true, blockOwnerDeletion: true },
      ],
    },
  };
  await kubectl.post(`${api}/replicasets`, child);
}

/** What kubectl deletes, on any storage. */
export function registerDeleteScenarios(test: TestFn<KubectlContext>, changedResources: readonly string[]): void {
  for (const resource of changedResources) {
    test(`delete removes one of ${resource} and waits until it is gone`, async (t) => {
      const { kubectl } = t.context;
      const namespace = await namespaceFor(kubectl, `delete ${resource}`);
      await kubectl.create(namespace, manifestsOf('gone', namespace)[resource]);
      t.regex(await kubectl.run(['delete', resource, 'gone', '-n', namespace]), /deleted/);
      t.regex((await kubectl.try(['get', resource, 'gone', '-n', namespace])).stderr, /NotFound/);
      t.regex((await kubectl.try(['delete', resource, 'gone', '-n', namespace])).stderr, /NotFound/);
    });
  }

  for (const cascade of ['background', 'foreground'] as const) {
    test(`delete --cascade=${cascade} deletes the dependents`, async (t) => {
      const { kubectl } = t.context;
      const namespace = await namespaceFor(kubectl, `cascade ${cascade}`);
      await ownedPair(t, namespace);
      await kubectl.run(['delete', 'deploy', 'owner', '-n', namespace, `--cascade=${cascade}`]);
      await kubectl.run(['wait', '--for=delete', 'rs/owned', '-n', namespace, '--timeout=20s']);
      t.regex((await kubectl.try(['get', 'rs', 'owned', '-n', namespace])).stderr, /NotFound/);
    });
  }

  test('delete --cascade=orphan keeps the dependents and removes their owner reference', async (t) => {
    const { kubectl } = t.context;
    const namespace = await namespaceFor(kubectl, t.title);
    await ownedPair(t, namespace);
    await kubectl.run(['delete', 'deploy', 'owner', '-n', namespace, '--cascade=orphan']);
    const owners = await kubectl.run([
      'get',
      'rs',
      'owned',
      '-n',
      namespace,
      '-o',
      'jsonpath={.metadata.ownerReferences}',
    ]);
    t.is(owners, '');
  });

  test('a kind with the default policy Orphan is deleted without an explicit policy', async (t) => {
    const { kubectl } = t.context;
    const namespace = await namespaceFor(kubectl, t.title);
    await kubectl.create(namespace, manifestsOf('plain')['deployments.extensions']);
    await kubectl.run(['delete', '--raw', `/apis/extensions/v1beta1/namespaces/${namespace}/deployments/plain`]);
    await kubectl.run(['wait', '--for=delete', 'deploy/plain', '-n', namespace, '--timeout=20s']);
    t.pass();
  });

  test('--grace-period is applied to a pod that runs on a node, and 0 removes it immediately', async (t) => {
    const { kubectl } = t.context;
    const namespace = await namespaceFor(kubectl, t.title);
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'slow' },
      spec: { nodeName: 'node-1', containers: [{ name: 'a', image: 'a:1' }] },
    };
    await kubectl.create(namespace, pod);
    await kubectl.run(['delete', 'pod', 'slow', '-n', namespace, '--grace-period=40', '--wait=false']);
    const deleting = await kubectl.json<{
      metadata: { deletionTimestamp?: string; deletionGracePeriodSeconds?: number };
    }>(['get', 'pod', 'slow', '-n', namespace]);
    t.is(deleting.metadata.deletionGracePeriodSeconds, 40);
    t.truthy(deleting.metadata.deletionTimestamp);
    await kubectl.run(['delete', 'pod', 'slow', '-n', namespace, '--grace-period=0', '--force']);
    t.regex((await kubectl.try(['get', 'pod', 'slow', '-n', namespace])).stderr, /NotFound/);
  });

  test('a finalizer delays the removal of an object until the finalizer is removed', async (t) => {
    const { kubectl } = t.context;
    const namespace = await namespaceFor(kubectl, t.title);
    const held = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'held', finalizers: ['example.com/hold'] } };
    await kubectl.create(namespace, held);
    await kubectl.run(['delete', 'cm', 'held', '-n', namespace, '--wait=false']);
    t.truthy(await kubectl.run(['get', 'cm', 'held', '-n', namespace, '-o', 'jsonpath={.metadata.deletionTimestamp}']));
    await kubectl.run([
      'patch',
      'cm',
      'held',
      '-n',
      namespace,
      '--type=merge',
      '-p',
      '{"metadata":{"finalizers":null}}',
    ]);
    t.regex((await kubectl.try(['get', 'cm', 'held', '-n', namespace])).stderr, /NotFound/);
  });

  test('delete -l removes matching objects and keeps the others', async (t) => {
    const { kubectl } = t.context;
    const namespace = await namespaceFor(kubectl, t.title);
    await kubectl.create(namespace, ...['red', 'blue'].map((name) => manifestsOf(name)['configmaps']));
    await kubectl.run(['delete', 'cm', '-n', namespace, '-l', 'app=red']);
    t.is((await kubectl.run(['get', 'cm', '-n', namespace, '-l', 'app', '-o', 'name'])).trim(), 'configmap/blue');
  });

  test('deleting a namespace deletes everything in it', async (t) => {
    const { kubectl } = t.context;
    await kubectl.run(['apply', '-f', '-'], { input: await guestbookIn('farewell') });
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'bound', namespace: 'farewell' },
      spec: { containers: [{ name: 'a', image: 'a:1' }] },
    };
    await kubectl.run(['create', '-f', '-'], { input: JSON.stringify(pod) });
    await kubectl.run(['delete', 'namespace', 'farewell', '--timeout=60s']);
    t.regex((await kubectl.try(['get', 'ns', 'farewell'])).stderr, /NotFound/);
    const left = await kubectl.run([
      'get',
      'cm,secret,svc,deploy,ds,rs,ing,ev,po',
      '-n',
      'farewell',
      '-o',
      'name',
      '--ignore-not-found',
    ]);
    t.is(left, '');
  });

  test('no object can be created in a terminating namespace', async (t) => {
    const { kubectl } = t.context;
    const namespace = await namespaceFor(kubectl, t.title);
    const held = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'held', finalizers: ['example.com/hold'] } };
    await kubectl.create(namespace, held);
    await kubectl.run(['delete', 'ns', namespace, '--wait=false']);
    t.is(await kubectl.run(['get', 'ns', namespace, '-o', 'jsonpath={.status.phase}']), 'Terminating');
    const refused = await kubectl.try(['create', '-n', namespace, '-f', '-'], {
      input: JSON.stringify(manifestsOf('late')['configmaps']),
    });
    t.regex(refused.stderr, /because it is being terminated/);
    await kubectl.run([
      'patch',
      'cm',
      'held',
      '-n',
      namespace,
      '--type=merge',
      '-p',
      '{"metadata":{"finalizers":null}}',
    ]);
    await kubectl.run(['wait', '--for=delete', `ns/${namespace}`, '--timeout=30s']);
  });

  test('system namespaces cannot be deleted', async (t) => {
    const { stderr } = await t.context.kubectl.try(['delete', 'ns', 'kube-system']);
    t.regex(stderr, /Forbidden.*this namespace may not be deleted/s);
  });
}
