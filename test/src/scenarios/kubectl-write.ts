import { writeFile } from 'node:fs/promises';
import type { TestFn } from 'ava';
import type { KubectlContext } from '../kubectl-cluster.ts';
import { namespaceFor } from '../kubectl-cluster.ts';
import { guestbookFolder, manifestsOf } from '../manifests.ts';

interface Loaded {
  readonly metadata: {
    readonly resourceVersion: string;
    readonly generation?: number;
    readonly labels?: Record<string, string>;
    readonly annotations?: Record<string, string>;
  };
  readonly spec: {
    readonly replicas: number;
    readonly template: {
      readonly spec: { readonly containers: readonly { readonly name: string; readonly image: string }[] };
    };
  };
  readonly data: Record<string, string>;
}

/** What kubectl writes, on any storage. */
export function registerWriteScenarios(test: TestFn<KubectlContext>, changedResources: readonly string[]): void {
  test('apply of the guestbook creates everything, a second apply changes nothing', async (t) => {
    const { kubectl } = t.context;
    const first = await kubectl.run(['apply', '-f', guestbookFolder]);
    t.is(first.match(/ created$/gm)?.length, 11, first);
    const versions = () =>
      kubectl.run([
        'get',
        'cm,secret,svc,deploy,ds,rs,ing',
        '-n',
        'guestbook',
        '-o',
        'jsonpath={range .items[*]}{.metadata.name}={.metadata.resourceVersion}{"\\n"}{end}',
      ]);
    const before = await versions();
    const second = await kubectl.run(['apply', '-f', guestbookFolder]);
    t.is(second.match(/ unchanged$/gm)?.length, 11, second);
    t.is(await versions(), before);
    const diff = await kubectl.try(['diff', '-f', guestbookFolder]);
    t.is(diff.code, 0, diff.stdout + diff.stderr);
  });

  for (const resource of changedResources) {
    test(`create, apply and replace work on ${resource}`, async (t) => {
      const { kubectl } = t.context;
      const namespace = await namespaceFor(kubectl, `apply ${resource}`);
      const manifest = manifestsOf('thing', namespace)[resource];
      const inNamespace = ['-n', namespace];
      const get = () => kubectl.json<Loaded>(['get', resource, 'thing', ...inNamespace]);

      t.regex(await kubectl.run(['create', ...inNamespace, '-f', '-'], { input: JSON.stringify(manifest) }), /created/);
      const again = await kubectl.try(['create', ...inNamespace, '-f', '-'], { input: JSON.stringify(manifest) });
      t.regex(again.stderr, /AlreadyExists/);

      const labelled = { ...manifest, metadata: { name: 'thing', labels: { app: 'thing', applied: 'yes' } } };
      await kubectl.run(['apply', ...inNamespace, '-f', '-'], { input: JSON.stringify(labelled) });
      t.regex(
        await kubectl.run(['apply', ...inNamespace, '-f', '-'], { input: JSON.stringify(labelled) }),
        /unchanged/,
      );

      const current = await get();
      t.is(current.metadata.labels?.['applied'], 'yes');
      const replacement = { ...current, metadata: { ...current.metadata, labels: { app: 'thing', replaced: 'yes' } } };
      await kubectl.run(['replace', ...inNamespace, '-f', '-'], { input: JSON.stringify(replacement) });
      t.deepEqual((await get()).metadata.labels, { app: 'thing', replaced: 'yes' });
      const stale = await kubectl.try(['replace', ...inNamespace, '-f', '-'], { input: JSON.stringify(replacement) });
      t.regex(stale.stderr, /Conflict/);
    });
  }

  for (const resource of changedResources) {
    test(`patch, label, annotate and edit work on ${resource}`, async (t) => {
      const { kubectl, folder } = t.context;
      const namespace = await namespaceFor(kubectl, `edit ${resource}`);
      const inNamespace = ['-n', namespace];
      const get = () => kubectl.json<Loaded>(['get', resource, 'thing', ...inNamespace]);
      await kubectl.run(['create', ...inNamespace, '-f', '-'], {
        input: JSON.stringify(manifestsOf('thing', namespace)[resource]),
      });

      await kubectl.run([
        'patch',
        resource,
        'thing',
        ...inNamespace,
        '--type=strategic',
        '-p',
        '{"metadata":{"annotations":{"s":"1"}}}',
      ]);
      await kubectl.run([
        'patch',
        resource,
        'thing',
        ...inNamespace,
        '--type=merge',
        '-p',
        '{"metadata":{"annotations":{"m":"2"}}}',
      ]);
      await kubectl.run([
        'patch',
        resource,
        'thing',
        ...inNamespace,
        '--type=json',
        '-p',
        '[{"op":"test","path":"/metadata/annotations/m","value":"2"},{"op":"add","path":"/metadata/annotations/j","value":"3"}]',
      ]);
      await kubectl.run(['label', resource, 'thing', ...inNamespace, 'tier=gold']);
      await kubectl.run(['annotate', resource, 'thing', ...inNamespace, 'note=hello']);
      const editor = `${folder}/editor-${namespace}.sh`;
      await writeFile(editor, '#!/bin/sh\nsed -i "s/note: hello/note: edited/" "$1"\n', { mode: 0o700 });
      await kubectl.run(['edit', resource, 'thing', ...inNamespace], { env: { KUBE_EDITOR: editor } });
      const edited = await get();
      t.is(edited.metadata.labels?.['tier'], 'gold');
      t.like(edited.metadata.annotations, { s: '1', m: '2', j: '3', note: 'edited' });
    });
  }

  test('namespaces can be created, applied, patched, labelled and edited', async (t) => {
    const { kubectl, folder } = t.context;
    const manifest = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team-space', labels: { a: '1' } } };
    await kubectl.run(['apply', '-f', '-'], { input: JSON.stringify(manifest) });
    await kubectl.run(['apply', '-f', '-'], { input: JSON.stringify(manifest) });
    await kubectl.run(['patch', 'ns', 'team-space', '-p', '{"metadata":{"labels":{"b":"2"}}}']);
    await kubectl.run(['annotate', 'ns', 'team-space', 'note=hello']);
    await writeFile(`${folder}/editor-ns.sh`, '#!/bin/sh\nsed -i "s/note: hello/note: edited/" "$1"\n', {
      mode: 0o700,
    });
    await kubectl.run(['edit', 'ns', 'team-space'], { env: { KUBE_EDITOR: `${folder}/editor-ns.sh` } });
    const loaded = await kubectl.json<Loaded>(['get', 'ns', 'team-space']);
    t.like(loaded.metadata.labels, { a: '1', b: '2', 'kubernetes.io/metadata.name': 'team-space' });
    t.is(loaded.metadata.annotations?.['note'], 'edited');
  });

  const scaled = ['deployments.apps', 'deployments.extensions', 'replicasets.apps', 'replicasets.extensions'];
  for (const resource of scaled) {
    test(`scale sets the replicas of ${resource} and respects --current-replicas`, async (t) => {
      const { kubectl } = t.context;
      const namespace = await namespaceFor(kubectl, `scale ${resource}`);
      const manifest = manifestsOf('web')[resource.replace('.apps', '.extensions')];
      await kubectl.create(namespace, manifest);
      await kubectl.run(['scale', resource, 'web', '-n', namespace, '--replicas=5']);
      const scaled = await kubectl.json<Loaded>(['get', resource, 'web', '-n', namespace]);
      t.is(scaled.spec.replicas, 5);
      t.is(scaled.metadata.generation, 2);
      await kubectl.run(['scale', resource, 'web', '-n', namespace, '--current-replicas=5', '--replicas=1']);
      const refused = await kubectl.try([
        'scale',
        resource,
        'web',
        '-n',
        namespace,
        '--current-replicas=5',
        '--replicas=9',
      ]);
      t.not(refused.code, 0);
      const scale = await kubectl.json<{ kind: string; spec: { replicas: number } }>([
        'get',
        resource,
        'web',
        '-n',
        namespace,
        '--subresource=scale',
      ]);
      t.is(scale.kind, 'Scale');
      t.is(scale.spec.replicas, 1);
    });
  }

  test('set image changes one container and keeps the others', async (t) => {
    const { kubectl } = t.context;
    const namespace = await namespaceFor(kubectl, t.title);
    const manifest = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'two' },
      spec: {
        selector: { matchLabels: { app: 'two' } },
        template: {
          metadata: { labels: { app: 'two' } },
          spec: {
            containers: [
              { name: 'a', image: 'a:1' },
              { name: 'b', image: 'b:1' },
            ],
          },
        },
      },
    };
    await kubectl.run(['apply', '-n', namespace, '-f', '-'], { input: JSON.stringify(manifest) });
    await kubectl.run(['set', 'image', 'deploy/two', '-n', namespace, 'b=b:2']);
    const loaded = await kubectl.json<Loaded>(['get', 'deploy', 'two', '-n', namespace]);
    t.deepEqual(
      loaded.spec.template.spec.containers.map(({ name, image }) => ({ name, image })),
      [
        { name: 'a', image: 'a:1' },
        { name: 'b', image: 'b:2' },
      ],
    );
  });

  test('an object created as extensions/v1beta1 is the same object in apps/v1', async (t) => {
    const { kubectl } = t.context;
    const namespace = await namespaceFor(kubectl, t.title);
    await kubectl.create(namespace, manifestsOf('twin')['deployments.extensions']);
    const uid = (resource: string) =>
      kubectl.run(['get', resource, 'twin', '-n', namespace, '-o', 'jsonpath={.metadata.uid} {.apiVersion}']);
    const [extensions, apps] = [await uid('deployments.v1beta1.extensions'), await uid('deployments.v1.apps')];
    t.is(extensions.split(' ')[0], apps.split(' ')[0]);
    t.is(extensions.split(' ')[1], 'extensions/v1beta1');
    t.is(apps.split(' ')[1], 'apps/v1');
  });

  test('unknown fields are rejected by create and named in the message', async (t) => {
    const { kubectl } = t.context;
    const manifest = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'typo' },
      spec: { port: [{ port: 80 }], ports: [{ port: 80 }] },
    };
    const { code, stderr } = await kubectl.try(['create', '-f', '-'], { input: JSON.stringify(manifest) });
    t.not(code, 0);
    t.regex(stderr, /unknown field "spec\.port"/);
  });

  test('invalid manifests are rejected with every cause', async (t) => {
    const { kubectl } = t.context;
    const manifest = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'broken' },
      spec: {
        replicas: -1,
        selector: { matchLabels: { app: 'a' } },
        template: { metadata: { labels: { app: 'b' } }, spec: { containers: [{ name: 'Bad_Name' }] } },
      },
    };
    const { stderr } = await kubectl.try(['create', '-f', '-'], { input: JSON.stringify(manifest) });
    t.regex(stderr, /spec\.replicas: Invalid value: -1/);
    t.regex(stderr, /spec\.template\.metadata\.labels: Invalid value/);
    t.regex(stderr, /spec\.template\.spec\.containers\[0\]\.name: Invalid value/);
    t.regex(stderr, /spec\.template\.spec\.containers\[0\]\.image: Required value/);
  });

  test('create --dry-run=server validates and stores nothing', async (t) => {
    const { kubectl } = t.context;
    const manifest = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'ghost' } });
    t.regex(
      await kubectl.run(['create', '--dry-run=server', '-f', '-'], { input: manifest }),
      /created \(server dry run\)/,
    );
    t.regex((await kubectl.try(['get', 'cm', 'ghost'])).stderr, /NotFound/);
  });

  test('stringData of a Secret is stored as data and never returned', async (t) => {
    const { kubectl } = t.context;
    const namespace = await namespaceFor(kubectl, t.title);
    const manifest = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'plain' },
      stringData: { password: 'hidden' },
    };
    await kubectl.create(namespace, manifest);
    const secret = await kubectl.json<{ data: Record<string, string>; stringData?: unknown }>([
      'get',
      'secret',
      'plain',
      '-n',
      namespace,
    ]);
    t.deepEqual(secret.data, { password: 'aGlkZGVu' });
    t.is(secret.stringData, undefined);
  });
}
