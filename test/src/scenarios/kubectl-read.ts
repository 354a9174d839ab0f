import type { TestFn } from 'ava';
import type { KubectlContext } from '../kubectl-cluster.ts';
import { namespaceFor } from '../kubectl-cluster.ts';
import { manifestsOf } from '../manifests.ts';
import { allResources } from './scope.ts';

const addedByServer = ['default', 'kube-root-ca.crt'];

/** What kubectl reads, on any storage. */
export function registerReadScenarios(test: TestFn<KubectlContext>): void {
  test('api-resources lists every kind of the specification with its short names, scope and verbs', async (t) => {
    const out = await t.context.kubectl.run(['api-resources', '-o', 'wide']);
    for (const row of [
      /^configmaps\s+cm\s+v1\s+true\s+ConfigMap\s+create,delete,deletecollection,get,list,patch,update,watch/m,
      /^events\s+ev\s+v1\s+true\s+Event/m,
      /^namespaces\s+ns\s+v1\s+false\s+Namespace/m,
      /^secrets\s+v1\s+true\s+Secret/m,
      /^services\s+svc\s+v1\s+true\s+Service/m,
      /^daemonsets\s+extensions\/v1beta1\s+true\s+DaemonSet/m,
      /^deployments\s+extensions\/v1beta1\s+true\s+Deployment/m,
      /^ingresses\s+extensions\/v1beta1\s+true\s+Ingress/m,
      /^replicasets\s+extensions\/v1beta1\s+true\s+ReplicaSet/m,
      /^ingresses\s+ing\s+networking\.k8s\.io\/v1\s+true\s+Ingress/m,
      /^deployments\s+deploy\s+apps\/v1\s+true\s+Deployment/m,
      /^pods\s+po\s+v1\s+true\s+Pod/m,
      /^leases\s+coordination\.k8s\.io\/v1\s+true\s+Lease/m,
    ]) {
      t.regex(out, row);
    }
  });

  test('api-versions names every group version', async (t) => {
    const versions = (await t.context.kubectl.run(['api-versions'])).trim().split('\n');
    for (const version of ['v1', 'apps/v1', 'extensions/v1beta1', 'coordination.k8s.io/v1'])
      t.true(versions.includes(version), version);
  });

  test('version reports a server version that kubectl can parse', async (t) => {
    const version = JSON.parse(await t.context.kubectl.run(['version', '-o', 'json'])) as {
      serverVersion: { major: string; gitVersion: string };
    };
    t.regex(version.serverVersion.gitVersion, /^v\d+\.\d+\.\d+/);
    t.is(version.serverVersion.major, '1');
  });

  test('get shows every kind as a table, wide table, yaml, json and name', async (t) => {
    const { kubectl } = t.context;
    const namespace = await namespaceFor(kubectl, t.title);
    const manifests = manifestsOf('sample', namespace);
    await kubectl.create(namespace, ...Object.values(manifests));
    const get = (...words: string[]) => kubectl.run(['get', allResources.join(), '-n', namespace, ...words]);
    const [table, wide, names] = [await get(), await get('-o', 'wide'), await get('-o', 'name')];
    const yaml = await kubectl.run([
      ...['get', '-n', namespace, '-o', 'yaml', ...allResources.map((resource) => `${resource}/sample`)],
    ]);
    const { items } = JSON.parse(await get('-o', 'json')) as { items: { kind: string; metadata: { name: string } }[] };
    for (const resource of allResources) {
      const kind = String(manifests[resource]?.['kind']);
      const row = resource === 'events' ? /an event/ : new RegExp(`^${kind.toLowerCase()}\\S*/sample\\b`, 'm');
      t.regex(table, row);
      t.regex(wide, row);
      t.regex(names, new RegExp(`^${kind.toLowerCase()}\\S*/sample$`, 'm'));
      t.regex(yaml, new RegExp(`^  kind: ${kind}\n(?: {2}.*\n)*? {4}uid: [0-9a-f-]{36}$`, 'm'));
      // The server adds an account and a config map to every namespace.
      const own = items.filter((item) => item.kind === kind && !addedByServer.includes(item.metadata.name));
      t.deepEqual(
        own.map(({ metadata }) => metadata.name),
        ['sample'],
        kind,
      );
    }
    t.true(wide.length > table.length);
  });

  test('tables have the columns of Kubernetes', async (t) => {
    const { kubectl } = t.context;
    const namespace = await namespaceFor(kubectl, t.title);
    const items = Object.values(manifestsOf('known', namespace));
    await kubectl.create(namespace, { apiVersion: 'v1', kind: 'List', items });
    const header = async (resource: string) =>
      (await kubectl.run(['get', resource, '-n', namespace]))
        .split('\n')[0]
        ?.trim()
        .split(/\s{2,}/);
    t.deepEqual(await header('cm'), ['NAME', 'DATA', 'AGE']);
    t.deepEqual(await header('secrets'), ['NAME', 'TYPE', 'DATA', 'AGE']);
    t.deepEqual(await header('svc'), ['NAME', 'TYPE', 'CLUSTER-IP', 'EXTERNAL-IP', 'PORT(S)', 'AGE']);
    t.deepEqual(await header('deploy'), ['NAME', 'READY', 'UP-TO-DATE', 'AVAILABLE', 'AGE']);
    t.deepEqual(await header('rs'), ['NAME', 'DESIRED', 'CURRENT', 'READY', 'AGE']);
    t.deepEqual(await header('ds'), [
      'NAME',
      'DESIRED',
      'CURRENT',
      'READY',
      'UP-TO-DATE',
      'AVAILABLE',
      'NODE SELECTOR',
      'AGE',
    ]);
    t.deepEqual(await header('ns'), ['NAME', 'STATUS', 'AGE']);
  });

  test('label and field selectors narrow a list, --all-namespaces widens it', async (t) => {
    const { kubectl } = t.context;
    const namespace = await namespaceFor(kubectl, t.title);
    const manifests = ['one', 'two', 'three'].map((name) => ({
      ...manifestsOf(name)['configmaps'],
      metadata: { name, labels: { app: name, even: String(name === 'two') } },
    }));
    await kubectl.create(namespace, ...manifests);
    const names = async (...args: string[]) =>
      (await kubectl.run(['get', 'cm', '-o', 'name', ...args])).trim().split('\n');
    t.deepEqual(await names('-n', namespace, '-l', 'even=true'), ['configmap/two']);
    t.deepEqual(await names('-n', namespace, '-l', 'app in (one,three),even!=true'), [
      'configmap/one',
      'configmap/three',
    ]);
    t.deepEqual(await names('-n', namespace, '--field-selector', 'metadata.name=three'), ['configmap/three']);
    t.true((await names('--all-namespaces')).length >= 3);
    const all = await kubectl.run(['get', 'cm', '-A']);
    t.regex(all, /^NAMESPACE\s+NAME/m);
    t.regex(all, new RegExp(`^${namespace}\\s+one`, 'm'));
    const refused = await kubectl.try(['get', 'cm', '-n', namespace, '--field-selector', 'data.key=value']);
    t.not(refused.code, 0);
    t.regex(refused.stderr, /BadRequest/);
  });

  test('--chunk-size=2 pages through a list and shows every object once', async (t) => {
    const { kubectl } = t.context;
    const namespace = await namespaceFor(kubectl, t.title);
    const names = Array.from({ length: 7 }, (_, i) => `item-${i}`);
    const items = names.map((name) => ({ ...manifestsOf(name)['configmaps'], metadata: { name, namespace } }));
    await kubectl.run(['create', '-f', '-'], { input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) });
    const { stdout, stderr } = await kubectl.try(['get', 'cm', '-n', namespace, '--chunk-size=2', '-v=8']);
    t.deepEqual(
      [...stdout.matchAll(/^(item-\d)/gm)].map((match) => match[1]),
      names,
    );
    t.true((stderr.match(/GET \S+configmaps\?\S*limit=2/g) ?? []).length >= 4, stderr);
  });

  test('get -w shows creates, updates and deletes as they happen', async (t) => {
    const { kubectl } = t.context;
    const namespace = await namespaceFor(kubectl, t.title);
    const watch = kubectl.follow(['get', 'cm', '-n', namespace, '-w', '--output-watch-events']);
    t.teardown(() => watch.stop());
    const manifest = { ...manifestsOf('seen')['configmaps'] };
    await kubectl.create(namespace, manifest);
    await watch.waitFor(/^ADDED\s+seen/);
    await kubectl.run(['label', 'cm', 'seen', '-n', namespace, 'touched=yes']);
    await watch.waitFor(/^MODIFIED\s+seen/);
    await kubectl.run(['delete', 'cm', 'seen', '-n', namespace]);
    await watch.waitFor(/^DELETED\s+seen/);
    t.pass();
  });

  test('get NAME -w shows a change of that object only', async (t) => {
    const { kubectl } = t.context;
    const namespace = await namespaceFor(kubectl, t.title);
    await kubectl.create(namespace, ...['mine', 'other'].map((name) => manifestsOf(name)['configmaps']));
    const watch = kubectl.follow([
      'get',
      'cm',
      'mine',
      '-n',
      namespace,
      '-w',
      '-o',
      'jsonpath={.metadata.name}={.metadata.labels.touched}{"\\n"}',
    ]);
    t.teardown(() => watch.stop());
    await watch.waitFor(/^mine=/);
    await kubectl.run(['label', 'cm', 'other', '-n', namespace, 'touched=other']);
    await kubectl.run(['label', 'cm', 'mine', '-n', namespace, 'touched=mine']);
    await watch.waitFor(/^mine=mine$/);
    t.false(watch.lines.some((line) => line.startsWith('other')));
  });

  test('explain describes kinds and nested fields of both groups', async (t) => {
    const { kubectl } = t.context;
    for (const [path, expected] of [
      ['configmaps', /KIND:\s+ConfigMap/],
      ['events.involvedObject', /FIELD:\s+involvedObject/],
      ['namespaces.spec', /finalizers/],
      ['secrets.stringData', /stringData/],
      ['services.spec.ports', /targetPort/],
    ] as const) {
      t.regex(await kubectl.run(['explain', path]), expected, path);
    }
    for (const kind of ['daemonsets', 'deployments', 'ingresses', 'replicasets']) {
      t.regex(await kubectl.run(['explain', kind, '--api-version=extensions/v1beta1']), /VERSION:\s+v1beta1/, kind);
    }
    const fields = await kubectl.run(['explain', 'deployments', '--recursive']);
    for (const field of ['maxSurge', 'terminationGracePeriodSeconds', 'httpGet', 'sources'])
      t.regex(fields, new RegExp(`^ +${field}\\s`, 'm'));
  });

  test('an unknown resource, a missing object and an invalid name have different errors', async (t) => {
    const { kubectl } = t.context;
    t.regex((await kubectl.try(['get', 'nonsense'])).stderr, /doesn't have a resource type "nonsense"/);
    t.regex(
      (await kubectl.try(['get', 'cm', 'absent'])).stderr,
      /Error from server \(NotFound\): configmaps "absent" not found/,
    );
    const invalid = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'Not_Valid' } };
    t.regex(
      (await kubectl.try(['create', '-f', '-'], { input: JSON.stringify(invalid) })).stderr,
      /ConfigMap "Not_Valid" is invalid: metadata\.name: Invalid value/,
    );
  });
}
