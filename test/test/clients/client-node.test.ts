import {
  ApiException,
  AppsV1Api,
  AuthenticationV1Api,
  AuthorizationV1Api,
  CoordinationV1Api,
  CoreV1Api,
  KubeConfig,
  type KubernetesObject,
  KubernetesObjectApi,
  makeInformer,
  NetworkingV1Api,
  PatchStrategy,
  setHeaderOptions,
  type V1ConfigMap,
  VersionApi,
  Watch,
} from '@kubernetes/client-node';
import anyTest, { type TestFn } from 'ava';
import {
  type KeelsonProcess,
  removeDirectory,
  startKeelson,
  storageArguments,
  temporaryDirectory,
} from '../../src/keelson-process.ts';
import { manifestsOf } from '../../src/manifests.ts';

/* The official JavaScript client, as its users call it. */

interface Context {
  readonly secure: KubeConfig;
  readonly insecure: KubeConfig;
}

const test = anyTest as TestFn<Context>;
let context: Context | undefined;
const cleanups: (() => Promise<unknown>)[] = [];

function configOf(server: KeelsonProcess): KubeConfig {
  const config = new KubeConfig();
  config.loadFromFile(server.kubeconfig);
  return config;
}

test.before(async () => {
  const folder = await temporaryDirectory();
  cleanups.push(() => removeDirectory(folder));
  const start = async (name: string, args: readonly string[] = []) => {
    const server = await startKeelson(`${folder}/${name}`, [...storageArguments(), ...args]);
    cleanups.unshift(() => server.stop());
    return configOf(server);
  };
  context = { secure: await start('secure'), insecure: await start('insecure', ['--insecure']) };
});
test.beforeEach((t) => {
  if (context !== undefined) t.context = context;
});
test.after.always(async () => {
  for (const cleanup of cleanups) await cleanup();
});

type Method = (parameters: Record<string, unknown>, options?: unknown) => Promise<Record<string, unknown>>;
/** A generated method by its name; the generated classes have one for every operation of every kind. */
function method(api: object, name: string): Method {
  const found = (api as Record<string, unknown>)[name];
  if (typeof found !== 'function') throw new Error(`no method ${name}`);
  return found.bind(api) as Method;
}

/** Selects config maps except the one that the server adds to every namespace. */
const ownMaps = 'metadata.name!=kube-root-ca.crt';

let namespaces = 0;
async function newNamespace(config: KubeConfig): Promise<string> {
  namespaces += 1;
  const name = `client-node-${namespaces}`;
  await config.makeApiClient(CoreV1Api).createNamespace({ body: { metadata: { name } } });
  return name;
}

async function codeOf(promise: Promise<unknown>): Promise<number> {
  try {
    await promise;
    return 0;
  } catch (error) {
    if (error instanceof ApiException) return error.code;
    throw error;
  }
}

const template = {
  metadata: { labels: { app: 'thing' } },
  spec: { containers: [{ name: 'main', image: 'main:1.0' }] },
};
const workload = { selector: { matchLabels: { app: 'thing' } }, template };

const typed: readonly (readonly [
  kind: string,
  api: (config: KubeConfig) => object,
  own: (namespace: string) => object,
])[] = [
  ['ConfigMap', (config) => config.makeApiClient(CoreV1Api), () => ({ data: { key: 'value' } })],
  ['Secret', (config) => config.makeApiClient(CoreV1Api), () => ({ data: { password: 'aGlkZGVu' } })],
  [
    'Service',
    (config) => config.makeApiClient(CoreV1Api),
    () => ({ spec: { selector: { app: 'thing' }, ports: [{ port: 80 }] } }),
  ],
  [
    'Endpoints',
    (config) => config.makeApiClient(CoreV1Api),
    () => ({ subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80 }] }] }),
  ],
  ['ServiceAccount', (config) => config.makeApiClient(CoreV1Api), () => ({})],
  ['Pod', (config) => config.makeApiClient(CoreV1Api), () => ({ spec: template.spec })],
  [
    'Event',
    (config) => config.makeApiClient(CoreV1Api),
    (namespace) => ({
      involvedObject: { kind: 'Pod', name: 'p', namespace },
      reason: 'Tested',
      firstTimestamp: new Date(0),
      eventTime: null,
    }),
  ],
  ['Deployment', (config) => config.makeApiClient(AppsV1Api), () => ({ spec: { replicas: 2, ...workload } })],
  ['ReplicaSet', (config) => config.makeApiClient(AppsV1Api), () => ({ spec: { replicas: 2, ...workload } })],
  ['DaemonSet', (config) => config.makeApiClient(AppsV1Api), () => ({ spec: workload })],
  [
    'Ingress',
    (config) => config.makeApiClient(NetworkingV1Api),
    () => ({ spec: { defaultBackend: { service: { name: 'web', port: { number: 80 } } } } }),
  ],
  [
    'Lease',
    (config) => config.makeApiClient(CoordinationV1Api),
    () => ({ spec: { holderIdentity: 'me', leaseDurationSeconds: 10 } }),
  ],
];

for (const server of ['secure', 'insecure'] as const) {
  for (const [kind, apiOf, own] of typed) {
    test(`${kind} over ${server === 'secure' ? 'TLS' : 'plain HTTP'}: create, read, list, replace, patch, delete`, async (t) => {
      const config = t.context[server];
      const api = apiOf(config);
      const namespace = await newNamespace(config);
      const here = { name: 'thing', namespace };
      const created = await method(
        api,
        `createNamespaced${kind}`,
      )({
        namespace,
        body: { metadata: { name: 'thing', labels: { app: 'thing' } }, ...own(namespace) },
      });
      const { metadata } = created as KubernetesObject;
      t.true((metadata as { creationTimestamp?: unknown }).creationTimestamp instanceof Date);
      t.regex(String(metadata?.uid), /^[0-9a-f-]{36}$/);

      const read = (await method(api, `readNamespaced${kind}`)(here)) as KubernetesObject;
      t.is(read.metadata?.uid, metadata?.uid);
      const list = await method(
        api,
        `listNamespaced${kind}`,
      )({ namespace, labelSelector: 'app=thing', fieldSelector: 'metadata.name=thing' });
      t.is((list['items'] as unknown[]).length, 1);
      const everywhere = await method(
        api,
        `list${kind}ForAllNamespaces`,
      )({ fieldSelector: `metadata.namespace=${namespace}` });
      t.is((everywhere['items'] as KubernetesObject[]).filter((item) => item.metadata?.name === 'thing').length, 1);

      read.metadata = { ...read.metadata, annotations: { replaced: 'yes' } };
      const replaced = (await method(api, `replaceNamespaced${kind}`)({ ...here, body: read })) as KubernetesObject;
      t.is(replaced.metadata?.annotations?.['replaced'], 'yes');
      t.is(await codeOf(method(api, `replaceNamespaced${kind}`)({ ...here, body: read })), 409);

      const patch = (body: unknown, type?: string) =>
        method(api, `patchNamespaced${kind}`)(
          { ...here, body },
          type === undefined ? undefined : setHeaderOptions('Content-Type', type),
        );
      await patch([{ op: 'add', path: '/metadata/annotations/json', value: 'yes' }]);
      await patch({ metadata: { annotations: { merge: 'yes' } } }, PatchStrategy.MergePatch);
      const patched = (await patch(
        { metadata: { annotations: { strategic: 'yes' } } },
        PatchStrategy.StrategicMergePatch,
      )) as KubernetesObject;
      t.like(patched.metadata?.annotations, { replaced: 'yes', json: 'yes', merge: 'yes', strategic: 'yes' });

      await method(api, `deleteNamespaced${kind}`)({ ...here, gracePeriodSeconds: 0 });
      t.is(await codeOf(method(api, `readNamespaced${kind}`)(here)), 404);
      for (const name of ['a', 'b']) {
        await method(
          api,
          `createNamespaced${kind}`,
        )({ namespace, body: { metadata: { name, labels: { batch: 'yes' } }, ...own(namespace) } });
      }
      if (kind !== 'Service') {
        await method(
          api,
          `deleteCollectionNamespaced${kind}`,
        )({ namespace, labelSelector: 'batch=yes', gracePeriodSeconds: 0 });
        const left = await method(api, `listNamespaced${kind}`)({ namespace, labelSelector: 'batch=yes' });
        t.deepEqual(left['items'], []);
      }
    });
  }

  test(`the kinds of extensions/v1beta1 through the object API, ${server}`, async (t) => {
    const config = t.context[server];
    const api = KubernetesObjectApi.makeApiClient(config);
    const namespace = await newNamespace(config);
    const manifests = Object.values(manifestsOf('thing', namespace)).filter(
      ({ apiVersion }) => apiVersion === 'extensions/v1beta1',
    );
    t.is(manifests.length, 4);
    for (const manifest of manifests) {
      const body = { ...manifest, metadata: { ...(manifest['metadata'] as object), namespace } } as KubernetesObject & {
        metadata: { name: string; namespace: string };
      };
      const created = await api.create(body);
      t.is(created.apiVersion, 'extensions/v1beta1');
      const patched = await api.patch({
        ...body,
        metadata: { ...body.metadata, labels: { app: 'thing', patched: 'yes' } },
      });
      t.is(patched.metadata?.labels?.['patched'], 'yes');
      const read = await api.read(body);
      t.is(read.metadata?.uid, created.metadata?.uid);
      await api.replace({ ...read, metadata: { ...read.metadata, annotations: { a: 'b' } } } as KubernetesObject);
      const listed = await api.list('extensions/v1beta1', String(manifest['kind']), namespace);
      t.is(listed.items.length, 1);
      // This version orphans by default: the object remains until the garbage collector has released its dependents.
      await api.delete(body, undefined, undefined, undefined, undefined, 'Background');
      t.is(await codeOf(api.read(body)), 404);
    }
  });
}

test('nodes, namespaces and the version are read and written', async (t) => {
  const core = t.context.secure.makeApiClient(CoreV1Api);
  await core.createNode({ body: { metadata: { name: 'machine-1' } } });
  const node = await core.patchNodeStatus(
    {
      name: 'machine-1',
      body: { status: { conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: new Date(1000) }] } },
    },
    setHeaderOptions('Content-Type', PatchStrategy.StrategicMergePatch),
  );
  t.is(node.status?.conditions?.[0]?.lastHeartbeatTime?.getTime(), 1000);
  const list = await core.listNamespace({});
  t.true(list.items.some(({ metadata }) => metadata?.name === 'default'));
  const version = await t.context.secure.makeApiClient(VersionApi).getCode();
  t.regex(version.gitVersion, /^v\d+\.\d+\.\d+/);
});

test('scale and status of a deployment have their own methods', async (t) => {
  const config = t.context.secure;
  const apps = config.makeApiClient(AppsV1Api);
  const namespace = await newNamespace(config);
  const here = { name: 'thing', namespace };
  await apps.createNamespacedDeployment({
    namespace,
    body: { metadata: { name: 'thing' }, spec: { replicas: 1, ...workload } },
  });
  const scale = await apps.readNamespacedDeploymentScale(here);
  t.is(scale.spec?.replicas, 1);
  await apps.replaceNamespacedDeploymentScale({ ...here, body: { ...scale, spec: { replicas: 4 } } });
  await apps.patchNamespacedDeploymentStatus(
    { ...here, body: { status: { replicas: 4, observedGeneration: 2 } } },
    setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
  );
  const deployment = await apps.readNamespacedDeployment(here);
  t.is(deployment.spec?.replicas, 4);
  t.is(deployment.status?.replicas, 4);
});

test('access reviews are answered', async (t) => {
  const review = await t.context.secure.makeApiClient(AuthorizationV1Api).createSelfSubjectAccessReview({
    body: { spec: { resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'default' } } },
  });
  t.true(review.status?.allowed);
  const stranger = await t.context.secure.makeApiClient(AuthorizationV1Api).createSubjectAccessReview({
    body: {
      spec: {
        user: 'stranger',
        groups: ['system:authenticated'],
        resourceAttributes: { verb: 'get', resource: 'pods' },
      },
    },
  });
  t.false(stranger.status?.allowed);
  const self = await t.context.secure.makeApiClient(AuthenticationV1Api).createSelfSubjectReview({ body: {} });
  t.true(self.status?.userInfo?.groups?.includes('system:masters'));
  const token = await t.context.secure
    .makeApiClient(AuthenticationV1Api)
    .createTokenReview({ body: { spec: { token: 'nobody' } } });
  t.falsy(token.status?.authenticated);
});

test('errors contain code, reason and message', async (t) => {
  const core = t.context.secure.makeApiClient(CoreV1Api);
  const error = await t.throwsAsync(core.readNamespacedConfigMap({ namespace: 'default', name: 'absent' }), {
    instanceOf: ApiException,
  });
  t.is(error?.code, 404);
  t.like(JSON.parse(error?.body as string), {
    kind: 'Status',
    reason: 'NotFound',
    message: 'configmaps "absent" not found',
  });
  const invalid = core.createNamespacedConfigMap({ namespace: 'default', body: { metadata: { name: 'Not_A_Name' } } });
  t.is(await codeOf(invalid), 422);
});

test('a list is read in pages of one state', async (t) => {
  const core = t.context.secure.makeApiClient(CoreV1Api);
  const namespace = await newNamespace(t.context.secure);
  const names = Array.from({ length: 25 }, (_, i) => `item-${String(i).padStart(2, '0')}`);
  for (const name of names) await core.createNamespacedConfigMap({ namespace, body: { metadata: { name } } });
  const seen: string[] = [];
  const versions = new Set<string | undefined>();
  let token: string | undefined;
  let pages = 0;
  do {
    const page = await core.listNamespacedConfigMap({
      namespace,
      limit: 10,
      fieldSelector: ownMaps,
      ...(token === undefined ? {} : { _continue: token }),
    });
    if (pages === 0) await core.deleteNamespacedConfigMap({ namespace, name: 'item-20' });
    seen.push(...page.items.map(({ metadata }) => metadata?.name ?? ''));
    versions.add(page.metadata?.resourceVersion);
    token = page.metadata?._continue || undefined;
    pages += 1;
  } while (token !== undefined);
  t.is(pages, 3);
  t.deepEqual(seen, names);
  t.is(versions.size, 1);
});

test('a watch receives every change in order and continues from a resourceVersion', async (t) => {
  const config = t.context.secure;
  const core = config.makeApiClient(CoreV1Api);
  const namespace = await newNamespace(config);
  const { metadata } = await core.listNamespacedConfigMap({ namespace });
  const follow = async (resourceVersion: string, count: number) => {
    const events: [string, string, string][] = [];
    let enough = () => {};
    const done = new Promise<void>((resolve) => {
      enough = resolve;
    });
    const controller = await new Watch(config).watch(
      `/api/v1/namespaces/${namespace}/configmaps`,
      { resourceVersion, fieldSelector: ownMaps },
      (phase, object: V1ConfigMap) => {
        events.push([phase, object.metadata?.name ?? '', object.metadata?.resourceVersion ?? '']);
        if (events.length === count) enough();
      },
      () => {},
    );
    return { done, events, stop: () => controller.abort() };
  };
  const all = await follow(metadata?.resourceVersion ?? '', 4);
  await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'a' } } });
  await core.patchNamespacedConfigMap({
    namespace,
    name: 'a',
    body: [{ op: 'add', path: '/data', value: { k: 'v' } }],
  });
  await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'b' } } });
  await core.deleteNamespacedConfigMap({ namespace, name: 'a' });
  await all.done;
  all.stop();
  t.deepEqual(
    all.events.map(([phase, name]) => `${phase} ${name}`),
    ['ADDED a', 'MODIFIED a', 'ADDED b', 'DELETED a'],
  );
  const rest = await follow(all.events[1]?.[2] ?? '', 2);
  await rest.done;
  rest.stop();
  t.deepEqual(rest.events, all.events.slice(2));
});

test('an informer keeps its store correct across a restart of the server', async (t) => {
  t.timeout(90_000);
  const folder = await temporaryDirectory();
  let server = await startKeelson(`${folder}/data`);
  t.teardown(async () => {
    await server.stop();
    await removeDirectory(folder);
  });
  const config = configOf(server);
  const core = config.makeApiClient(CoreV1Api);
  await core.createNamespacedConfigMap({
    namespace: 'default',
    body: { metadata: { name: 'before' }, data: { v: '1' } },
  });
  const informer = makeInformer<V1ConfigMap>(config, '/api/v1/namespaces/default/configmaps', () =>
    core.listNamespacedConfigMap({ namespace: 'default' }),
  );
  let stopped = false;
  t.teardown(() => {
    stopped = true;
    return informer.stop();
  });
  const log: string[] = [];
  let look = () => {};
  for (const verb of ['add', 'update', 'delete'] as const) {
    informer.on(verb, ({ metadata }) => {
      if (metadata?.name === 'kube-root-ca.crt') return;
      log.push(`${verb} ${metadata?.name}`);
      look();
    });
  }
  // The client stops after an error, and its user has to restart it.
  const startAgain = () => {
    if (!stopped) informer.start().catch(() => {});
  };
  informer.on('error', () => {
    if (!stopped) setTimeout(startAgain, 200);
  });
  const seen = async (entry: string) => {
    while (!log.includes(entry)) {
      await new Promise<void>((resolve) => {
        look = resolve;
      });
    }
  };
  await informer.start();
  await seen('add before');
  const { port } = new URL(server.url);
  await server.stop();
  server = await startKeelson(`${folder}/data`, ['--listen', `127.0.0.1:${port}`]);
  const again = configOf(server).makeApiClient(CoreV1Api);
  await again.createNamespacedConfigMap({ namespace: 'default', body: { metadata: { name: 'after' } } });
  await again.patchNamespacedConfigMap({
    namespace: 'default',
    name: 'before',
    body: [{ op: 'replace', path: '/data/v', value: '2' }],
  });
  await seen('add after');
  await seen('update before');
  await again.deleteNamespacedConfigMap({ namespace: 'default', name: 'after' });
  await seen('delete after');
  t.deepEqual(
    informer
      .list('default')
      .filter(({ metadata }) => metadata?.name !== 'kube-root-ca.crt')
      .map(({ metadata, data }) => [metadata?.name, data]),
    [['before', { v: '2' }]],
  );
  t.is(log.filter((entry) => entry === 'add before').length, 1);
});
