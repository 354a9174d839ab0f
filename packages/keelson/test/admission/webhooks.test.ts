import type { ServerResponse } from 'node:http';
import { isStatusError, type KubeObject, type StatusError } from '@keelson/core';
import type { Store } from '@keelson/core/storage-adapter';
import {
  ConfigMap,
  Deployment,
  ExtensionsV1beta1Deployment,
  MutatingWebhookConfiguration,
  Namespace,
  Pod,
  Service,
  ValidatingWebhookConfiguration,
} from '@keelson/kinds';
import { MemoryStore } from '@keelson/storage-memory';
import { freePort, until } from '@keelson/test-support';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { type ControlPlane, createControlPlane, type Listening } from '../../src/index.ts';
import { createPromMetrics } from '../../src/observe/prom-metrics.ts';
import { type Answer, patchOf, type Review, startWebhookServer, type WebhookServer } from './webhook-server.ts';

interface Shared {
  readonly plane: ControlPlane;
  readonly server: WebhookServer;
  readonly listening: Listening;
}
const test = anyTest as TestFn<Shared>;

test.before(async (t) => {
  const plane = await createControlPlane({ controllers: false, metrics: createPromMetrics() });
  const listening = await plane.listen();
  t.context = Object.assign(t.context, { plane, server: await startWebhookServer(), listening });
});
test.after.always(async (t) => {
  await t.context.plane?.close();
  t.context.server?.close();
});

const namespace = 'default';
const configMap = (name: string, label: string, data: Record<string, string> = {}) =>
  ({ metadata: { name, namespace, labels: { test: label } }, data }) as ConfigMap;

interface Hook {
  readonly name?: string;
  readonly type?: 'mutating' | 'validating';
  readonly rules?: object[];
  readonly [field: string]: unknown;
}
const configMaps = { operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] };

/** Installs webhooks for objects with the label `test: LABEL`, and waits until requests reach them. */
async function install(t: ExecutionContext<Shared>, label: string, ...hooks: Hook[]): Promise<void> {
  const { plane, server } = t.context;
  const probe = `/${label}-probe`;
  const client = (fields: Hook, path: string) => ({
    name: `${label}.example.com`,
    clientConfig: { url: `https://127.0.0.1:${server.port}${path}`, caBundle: server.caBundle },
    rules: [configMaps],
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    objectSelector: { matchLabels: { test: label } },
    ...fields,
  });
  for (const type of ['mutating', 'validating'] as const) {
    const chosen = hooks.filter((hook) => (hook.type ?? 'validating') === type);
    const webhooks = chosen.map(({ type: _, ...fields }, i) => client(fields, `/${label}${i === 0 ? '' : i}`));
    const last = {
      name: 'probe.example.com',
      failurePolicy: 'Ignore',
      objectSelector: { matchLabels: { probe: label } },
    };
    const kind = type === 'mutating' ? MutatingWebhookConfiguration : ValidatingWebhookConfiguration;
    const object = { metadata: { name: label }, webhooks: [...webhooks, client(last, `${probe}-${type}`)] };
    await plane.client<KubeObject>(kind).create(object as KubeObject);
  }
  await until(async () => {
    const labels = { probe: label };
    await plane
      .client(ConfigMap)
      .namespace(namespace)
      .create({ metadata: { name: `probe-${label}`, labels } } as ConfigMap, { dryRun: true });
    return server.reviews.has(`${probe}-mutating`) && server.reviews.has(`${probe}-validating`);
  });
}

async function failure(promise: Promise<unknown>): Promise<StatusError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!isStatusError(error)) throw new Error(`expected a StatusError, got ${String(error)}`);
  return error;
}

const maps = (t: ExecutionContext<Shared>) => t.context.plane.client(ConfigMap).namespace(namespace);

test('a mutating webhook receives the request and changes the object', async (t) => {
  const { server } = t.context;
  server.on('/change', () => patchOf({ op: 'add', path: '/data/added', value: 'yes' }));
  await install(t, 'change', { type: 'mutating' });
  const made = await maps(t).create(configMap('changed', 'change', { a: 'b' }), { fieldManager: 'me' });
  t.deepEqual(made.data, { a: 'b', added: 'yes' });
  const [review] = server.reviews.get('/change') ?? [];
  t.like(review, {
    kind: { group: '', version: 'v1', kind: 'ConfigMap' },
    resource: { group: '', version: 'v1', resource: 'configmaps' },
    requestKind: { group: '', version: 'v1', kind: 'ConfigMap' },
    requestResource: { group: '', version: 'v1', resource: 'configmaps' },
    name: 'changed',
    namespace,
    operation: 'CREATE',
    userInfo: { username: 'system:apiserver', groups: ['system:masters'] },
    oldObject: null,
    dryRun: false,
    options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1', fieldManager: 'me' },
  });
  t.like(review?.object, { apiVersion: 'v1', kind: 'ConfigMap', data: { a: 'b' } });
});

for (const [label, answer, code, message] of [
  ['message', { status: { message: 'not today', code: 418 } }, 418, ': not today'],
  ['reason', { status: { reason: 'Forbidden', code: 403 } }, 403, ': Forbidden'],
  ['silent', {}, 400, ' without explanation'],
] as const) {
  test(`the denial of a webhook is the answer of the server: ${label}`, async (t) => {
    t.context.server.on(`/${label}`, () => ({ allowed: false, ...answer }));
    await install(t, label, {});
    const error = await failure(maps(t).create(configMap(label, label)));
    t.is(error.code, code);
    t.is(error.message, `admission webhook "${label}.example.com" denied the request${message}`);
    await t.throwsAsync(maps(t).get(label), { message: `configmaps "${label}" not found` });
  });
}

const raw =
  (status: number, body: string, headers = {}): Answer =>
  (response) =>
    void response.writeHead(status, headers).end(body);
const invalid = 'received invalid webhook response';
for (const [label, answer, message] of [
  ['text', () => raw(200, 'hello'), /failed to call webhook: couldn't get version\/kind; json parse error: /],
  ['failing', () => raw(500, 'secret'), /failed to call webhook: an error on the server \("unknown"\) has prevented/],
  ['missing', () => raw(404, ''), /failed to call webhook: the server could not find the requested resource$/],
  [
    'redirecting',
    () => raw(302, '', { Location: 'http://169.254.169.254/' }),
    /failed to call webhook: the webhook attempted to redirect this request \(302\), which is not permitted$/,
  ],
  ['huge', () => raw(200, ' '.repeat(5 * 1024 * 1024)), /failed to call webhook: Post ".*": the answer is longer than/],
  ['empty', () => raw(200, '{}'), new RegExp(`${invalid}: webhook response was absent$`)],
  ['other-uid', () => ({ allowed: true, uid: 'x' }), new RegExp(`${invalid}: expected response.uid=".*", got "x"$`)],
  ['patching', () => patchOf({}), new RegExp(`${invalid}: validating webhook may not return response.patch$`)],
  ['cut', () => (response) => response.destroy(), /failed to call webhook: Post ".*": EOF$/],
] as [string, (review: Review) => Answer, RegExp][]) {
  test(`an invalid answer fails the request or is ignored: ${label}`, async (t) => {
    t.context.server.on(`/${label}`, answer);
    t.context.server.on(`/${label}1`, answer);
    await install(
      t,
      label,
      {},
      { name: 'ignored.example.com', failurePolicy: 'Ignore', objectSelector: { matchLabels: { test: `${label}-i` } } },
    );
    const error = await failure(maps(t).create(configMap(label, label)));
    t.is(error.code, 500);
    const beginning = `Internal error occurred: failed calling webhook "${label}.example.com": `;
    t.is(error.message.slice(0, beginning.length), beginning);
    t.regex(error.message, message);
    t.notRegex(error.message, /secret/);
    t.is((await maps(t).create(configMap(label, `${label}-i`))).metadata?.name, label);
  });
}

test('a request to a webhook that does not respond ends after its timeout', async (t) => {
  t.context.server.on('/hanging', () => () => {});
  await install(t, 'hanging', { timeoutSeconds: 1 });
  const { message } = await failure(maps(t).create(configMap('hanging', 'hanging')));
  const url = `https://127.0.0.1:${t.context.server.port}/hanging?timeout=1s`;
  t.is(
    message,
    'Internal error occurred: failed calling webhook "hanging.example.com": failed to call webhook: ' +
      `Post "${url}": context deadline exceeded`,
  );
});

test('a webhook that cannot be reached, or whose certificate is not trusted, fails the request', async (t) => {
  const port = await freePort();
  await install(t, 'refused', { clientConfig: { url: `https://127.0.0.1:${port}/` } });
  t.regex(
    (await failure(maps(t).create(configMap('refused', 'refused')))).message,
    new RegExp(
      `Post "https://127.0.0.1:${port}/\\?timeout=10s": dial tcp 127.0.0.1:${port}: connect: connection refused$`,
    ),
  );
  await install(t, 'untrusted', { clientConfig: { url: `https://127.0.0.1:${t.context.server.port}/` } });
  t.regex(
    (await failure(maps(t).create(configMap('untrusted', 'untrusted')))).message,
    /: tls: failed to verify certificate: x509: certificate signed by unknown authority$/,
  );
});

for (const [label, patch, message] of [
  [
    'no-json',
    { allowed: true, patchType: 'JSONPatch', patch: 'AAAA' },
    /received undecodable patch in webhook response/,
  ],
  ['no-type', { allowed: true, patch: 'W10=' }, /webhook returned response.patch but not response.patchType$/],
  ['other-type', { ...patchOf({ op: 'test' }), patchType: 'Merge' }, /unsupported patch type "Merge"$/],
  ['no-path', patchOf({ op: 'remove', path: '/nothing' }), /^Internal error occurred: operation 0: /],
  ['wrong-type', patchOf({ op: 'add', path: '/data', value: 7 }), /^Internal error occurred: /],
  [
    'namespace',
    patchOf({ op: 'replace', path: '/metadata/namespace', value: 'kube-system' }),
    /^the namespace of the provided object does not match/,
  ],
] as [string, Record<string, unknown>, RegExp][]) {
  test(`a patch that does not apply fails the request: ${label}`, async (t) => {
    t.context.server.on(`/${label}`, () => patch);
    await install(t, label, { type: 'mutating' });
    t.regex((await failure(maps(t).create(configMap(label, label)))).message, message);
  });
}

test('webhooks are called in order, and again when a later one has changed the object', async (t) => {
  const calls: string[] = [];
  const append = (name: string) => (review: Review) => {
    const before = (review.object as { data?: Record<string, string> } | null)?.data?.['calls'] ?? '';
    calls.push(`${name}(${before})`);
    return before.includes(name)
      ? { allowed: true }
      : patchOf({ op: 'add', path: '/data/calls', value: before + name });
  };
  t.context.server.on('/order', append('a'));
  t.context.server.on('/order1', append('b'));
  t.context.server.on('/order2', append('c'));
  const type = 'mutating';
  await install(
    t,
    'order',
    { type, reinvocationPolicy: 'IfNeeded' },
    { type, name: 'b.example.com' },
    { type, name: 'c.example.com', reinvocationPolicy: 'IfNeeded' },
  );
  t.is((await maps(t).create(configMap('order', 'order', { calls: '' }))).data?.['calls'], 'abc');
  t.deepEqual(calls, ['a()', 'b(a)', 'c(ab)', 'a(abc)']);
});

test('a webhook for one version of a resource examines the others in that version', async (t) => {
  const { plane, server } = t.context;
  const rules = [{ operations: ['CREATE'], apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'] }];
  server.on('/version', () => patchOf({ op: 'add', path: '/spec/replicas', value: 3 }));
  await install(
    t,
    'version',
    { type: 'mutating', rules },
    { type: 'mutating', name: 'exact.example.com', rules, matchPolicy: 'Exact' },
  );
  const labels = { test: 'version' };
  const made = await plane
    .client(ExtensionsV1beta1Deployment)
    .namespace(namespace)
    .create({
      metadata: { name: 'version', labels },
      spec: { template: { metadata: { labels }, spec: { containers: [{ name: 'a', image: 'b' }] } } },
    } as never);
  t.like(made, { apiVersion: 'extensions/v1beta1', spec: { replicas: 3 } });
  t.like(server.reviews.get('/version')?.[0], {
    kind: { group: 'apps', version: 'v1', kind: 'Deployment' },
    requestKind: { group: 'extensions', version: 'v1beta1', kind: 'Deployment' },
    requestResource: { group: 'extensions', version: 'v1beta1', resource: 'deployments' },
    object: { apiVersion: 'apps/v1', kind: 'Deployment' },
  });
  t.is(server.reviews.get('/version1'), undefined);
});

test('a webhook for a subresource receives and changes its kind', async (t) => {
  const { plane, server } = t.context;
  const rules = [
    { operations: ['UPDATE'], apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments/scale'] },
  ];
  server.on('/scale', () => patchOf({ op: 'replace', path: '/spec/replicas', value: 5 }));
  const objectSelector = {};
  await install(t, 'scale', { type: 'mutating', rules, objectSelector });
  const deployments = plane.client(Deployment).namespace(namespace);
  const labels = { app: 'scale' };
  await deployments.create({
    metadata: { name: 'scale' },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'a', image: 'b' }] } },
    },
  } as Deployment);
  await deployments.patchSubresource('scale', 'scale', 'merge', { spec: { replicas: 2 } });
  t.is((await deployments.get('scale')).spec.replicas, 5);
  t.like(server.reviews.get('/scale')?.[0], {
    kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
    resource: { group: 'apps', version: 'v1', resource: 'deployments' },
    subResource: 'scale',
    object: { spec: { replicas: 2 } },
    oldObject: { spec: { replicas: 1 } },
    options: { kind: 'UpdateOptions', apiVersion: 'meta.k8s.io/v1' },
  });
});

test('selectors compare the labels of namespaces, and of both states of an object', async (t) => {
  const { plane, server } = t.context;
  await plane.client(Namespace).create({ metadata: { name: 'guarded', labels: { guarded: 'yes' } } } as Namespace);
  const rules = [{ ...configMaps, resources: ['configmaps', 'namespaces'] }];
  await install(
    t,
    'selected',
    { rules, objectSelector: {}, namespaceSelector: { matchLabels: { guarded: 'yes' } } },
    { name: 'objects.example.com', rules: [{ ...configMaps, operations: ['UPDATE'] }] },
  );
  const free = maps(t);
  const guarded = plane.client(ConfigMap).namespace('guarded');
  await free.create({ metadata: { name: 'free' } } as ConfigMap);
  await guarded.create({ metadata: { name: 'guarded' } } as ConfigMap);
  await plane.client(Namespace).create({ metadata: { name: 'new', labels: { guarded: 'yes' } } } as Namespace);
  t.deepEqual(
    server.reviews.get('/selected')?.map(({ name, namespace: place }) => [name, place]),
    [
      ['guarded', 'guarded'],
      ['new', 'new'],
    ],
  );
  await free.patch('free', 'merge', { metadata: { labels: { test: 'selected' } } });
  await free.patch('free', 'merge', { metadata: { labels: { test: null } } });
  await free.patch('free', 'merge', { data: { a: 'b' } });
  t.is(server.reviews.get('/selected1')?.length, 2);
});

test('match conditions decide which requests a webhook examines', async (t) => {
  const { plane, server } = t.context;
  server.on('/conditions', () => ({ allowed: false }));
  const condition = (name: string, expression: string) => ({ name, expression });
  await install(
    t,
    'conditions',
    {
      matchConditions: [
        condition('named', "object.metadata.name == 'guarded'"),
        condition('user', "request.userInfo.username == 'system:apiserver' && request.operation == 'CREATE'"),
        condition('may-read', "authorizer.group('').resource('pods').namespace('default').check('get').allowed()"),
      ],
    },
    {
      name: 'failing.example.com',
      objectSelector: { matchLabels: { test: 'conditions-f' } },
      matchConditions: [condition('missing', "object.data.missing == 'x'")],
    },
    {
      name: 'ignored.example.com',
      failurePolicy: 'Ignore',
      objectSelector: { matchLabels: { test: 'conditions-i' } },
      matchConditions: [condition('missing', "object.data.missing == 'x'")],
    },
  );
  await maps(t).create(configMap('unguarded', 'conditions'));
  t.is((await failure(maps(t).create(configMap('guarded', 'conditions')))).code, 400);
  t.is(server.reviews.get('/conditions')?.length, 1);
  const failed = await failure(maps(t).create(configMap('f', 'conditions-f', { a: 'b' })));
  t.is(failed.code, 403);
  t.regex(failed.message, /^configmaps "f" is forbidden: .*no such key: missing/);
  await maps(t).create(configMap('i', 'conditions-i', { a: 'b' }));
  t.is(server.reviews.get('/conditions2'), undefined);
  const configurations = plane.client(ValidatingWebhookConfiguration);
  const stored = await configurations.get('conditions');
  const [first, ...rest] = stored.webhooks ?? [];
  if (first === undefined) throw new Error('the configuration has webhooks');
  const broken = { ...first, matchConditions: [condition('broken', 'object.'), condition('text', "'yes'")] };
  const invalid = await failure(configurations.update({ ...stored, webhooks: [broken, ...rest] }));
  t.is(invalid.code, 422);
  t.deepEqual(
    invalid.status.details?.causes?.map(({ field }) => field),
    ['webhooks[0].matchConditions[0].expression', 'webhooks[0].matchConditions[1].expression'],
  );
});

test('a webhook sees deletes with the old object, and their dry runs', async (t) => {
  const { server } = t.context;
  server.on('/deleted', ({ dryRun }) => ({ allowed: dryRun === true }));
  server.on('/deleted1', () => patchOf({ op: 'add', path: '/data', value: {} }));
  const rules = [{ ...configMaps, operations: ['DELETE'] }];
  await install(
    t,
    'deleted',
    { rules },
    { type: 'mutating', name: 'm.example.com', rules, objectSelector: { matchLabels: { test: 'deleted-m' } } },
  );
  await maps(t).create(configMap('deleted', 'deleted'));
  await maps(t).delete('deleted', { dryRun: true, gracePeriodSeconds: 3 });
  const error = await failure(maps(t).delete('deleted'));
  t.regex(error.message, /^admission webhook "deleted.example.com" denied the request without explanation$/);
  const [dry, real] = server.reviews.get('/deleted') ?? [];
  t.like(dry, { operation: 'DELETE', object: null, dryRun: true, oldObject: { metadata: { name: 'deleted' } } });
  t.deepEqual(dry?.['options'], {
    kind: 'DeleteOptions',
    apiVersion: 'meta.k8s.io/v1',
    gracePeriodSeconds: 3,
    dryRun: ['All'],
  });
  t.is(real?.['dryRun'], false);
  await maps(t).create(configMap('deleted-m', 'deleted-m'));
  server.on('/deleted', () => patchOf({ op: 'add', path: '/data', value: {} }));
  t.regex(
    (await failure(maps(t).delete('deleted-m'))).message,
    /attempted to modify the object, which is not supported/,
  );
});

test('a webhook can deny connections to pods', async (t) => {
  const { plane, server } = t.context;
  const rules = [{ operations: ['CONNECT'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods/exec'] }];
  server.on('/exec', () => ({ allowed: false, status: { message: 'no shells' } }));
  await install(t, 'exec', { rules, objectSelector: {} });
  const answer = await fetch(
    `${t.context.listening.url}/api/v1/namespaces/${namespace}/pods/some/exec?command=sh&stdout=true`,
    { method: 'POST' },
  );
  t.is(answer.status, 400);
  t.like(await answer.json(), { message: 'admission webhook "exec.example.com" denied the request: no shells' });
  t.like(server.reviews.get('/exec')?.[0], {
    kind: { group: '', version: 'v1', kind: 'PodExecOptions' },
    resource: { group: '', version: 'v1', resource: 'pods' },
    subResource: 'exec',
    operation: 'CONNECT',
    object: { kind: 'PodExecOptions', command: ['sh'], stdout: true },
    options: null,
  });
  t.truthy(plane);
});

test('the binding of a pod is examined once, as a create of the subresource', async (t) => {
  const { plane, server } = t.context;
  const rules = [{ operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods/*'] }];
  await install(t, 'binding', { rules, objectSelector: {} });
  const pods = plane.client(Pod).namespace(namespace);
  await pods.create({ metadata: { name: 'bound' }, spec: { containers: [{ name: 'a', image: 'b' }] } } as Pod);
  await pods.createSubresource('bound', 'binding', {
    metadata: { name: 'bound' },
    target: { kind: 'Node', name: 'n' },
  } as KubeObject);
  t.is((await pods.get('bound')).spec.nodeName, 'n');
  // Other tests of this file connect to pods at the same time.
  const own = server.reviews.get('/binding')?.filter(({ name }) => name === 'bound');
  t.deepEqual(
    own?.map(({ operation, subResource, kind }) => [operation, subResource, kind]),
    [
      ['CREATE', undefined, { group: '', version: 'v1', kind: 'Pod' }],
      ['CREATE', 'binding', { group: '', version: 'v1', kind: 'Binding' }],
    ],
  );
});

test('warnings of webhooks are headers of the answer', async (t) => {
  t.context.server.on('/warned', () => ({ allowed: true, warnings: ['take care'] }));
  await install(t, 'warned', {});
  const answer = await fetch(`${t.context.listening.url}/api/v1/namespaces/${namespace}/configmaps`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(configMap('warned', 'warned')),
  });
  t.is(answer.status, 201);
  t.is(answer.headers.get('warning'), '299 - "take care"');
});

test('configurations of webhooks are not examined by webhooks', async (t) => {
  t.context.server.on('/own', () => ({ allowed: false }));
  const rules = [
    { operations: ['*'], apiGroups: ['admissionregistration.k8s.io'], apiVersions: ['*'], resources: ['*'] },
  ];
  await install(t, 'own', { rules, objectSelector: {} });
  await t.context.plane.client(ValidatingWebhookConfiguration).delete('own');
  t.is(t.context.server.reviews.get('/own'), undefined);
});

test('a webhook is called through a service, on kept connections', async (t) => {
  const { plane, server } = t.context;
  const { caBundle, port } = server;
  const service = { namespace, name: 'hook', path: '/service', port };
  await install(t, 'service', { clientConfig: { service, caBundle } });
  t.is(
    (await failure(maps(t).create(configMap('service', 'service')))).message,
    'Internal error occurred: failed calling webhook "service.example.com": failed to call webhook: ' +
      `Post "https://hook.default.svc:${port}/service?timeout=10s": service "hook" not found`,
  );
  const spec = { type: 'ExternalName', externalName: 'localhost' };
  await plane.client(Service).create({ metadata: { name: 'hook', namespace }, spec } as Service);
  await maps(t).create(configMap('service', 'service'));
  const before = server.connections();
  for (let i = 0; i < 20; i++) await maps(t).create(configMap(`service-${i}`, 'service'));
  t.is(server.reviews.get('/service')?.length, 21);
  t.deepEqual([...server.userAgents], ['kube-apiserver-admission']);
  t.true(server.connections() - before < 10);
});

test('a webhook takes effect on every server of a store', async (t) => {
  const { server } = t.context;
  const store = new MemoryStore({});
  const shared = new Proxy<Store>(store, {
    get(target, property) {
      if (property === 'close') return async () => {};
      const value = Reflect.get(target, property, target) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const options = { controllers: false, storage: shared };
  const [one, other] = [await createControlPlane(options), await createControlPlane(options)];
  t.teardown(async () => {
    await Promise.all([one.close(), other.close()]);
    await store.close();
  });
  server.on('/servers', () => ({ allowed: false, status: { details: { causes: [{ message: 'x'.repeat(40_000) }] } } }));
  await one.client(ValidatingWebhookConfiguration).create({
    metadata: { name: 'servers' },
    webhooks: [
      {
        name: 'servers.example.com',
        clientConfig: { url: `https://127.0.0.1:${server.port}/servers`, caBundle: server.caBundle },
        rules: [configMaps],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  } as ValidatingWebhookConfiguration);
  const create = () => other.client(ConfigMap).namespace(namespace).create(configMap('servers', 'x'), { dryRun: true });
  await until(async () => (await create().catch((error: unknown) => error)) instanceof Error);
  t.is((await failure(create())).status.details, undefined);
  await one.client(ValidatingWebhookConfiguration).delete('servers');
  await until(async () =>
    create().then(
      () => true,
      () => false,
    ),
  );
});

test('metrics count calls and rejections', async (t) => {
  const { listening, server } = t.context;
  server.on('/counted', ({ name }) => ({ allowed: name !== 'denied' }));
  await install(t, 'counted', {});
  await maps(t).create(configMap('counted', 'counted'));
  await failure(maps(t).create(configMap('denied', 'counted')));
  const text = await (await fetch(`${listening.url}/metrics`)).text();
  const count = (name: string, ...labels: string[]) => {
    const all = ['name="counted.example.com"', 'type="validating"', 'operation="CREATE"', ...labels];
    const line = text
      .split('\n')
      .find((one) => one.startsWith(`${name}{`) && all.every((label) => one.includes(label)));
    return line?.split(' ').at(-1);
  };
  t.is(count('apiserver_admission_webhook_request_total', 'rejected="false"', 'code="200"'), '1');
  t.is(count('apiserver_admission_webhook_request_total', 'rejected="true"', 'code="400"'), '1');
  t.is(count('apiserver_admission_webhook_rejection_count', 'error_type="no_error"', 'rejection_code="400"'), '1');
});

test('the duration for service levels of a request is without that of webhooks', async (t) => {
  const { listening, server } = t.context;
  const delayMs = 200;
  const slow = (response: ServerResponse, { uid }: Review) => {
    const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid, allowed: true } };
    response.setHeader('Content-Type', 'application/json');
    setTimeout(() => response.end(JSON.stringify(review)), delayMs);
  };
  for (const path of ['/slow', '/slow1']) server.on(path, () => slow);
  const leases = { ...configMaps, apiGroups: ['coordination.k8s.io'], resources: ['leases'] };
  await install(
    t,
    'slow',
    { rules: [leases], type: 'mutating' },
    { rules: [leases] },
    { rules: [leases], name: 'b.c.d' },
  );
  const created = await fetch(`${listening.url}/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ metadata: { name: 'slow', labels: { test: 'slow' } } }),
  });
  t.is(created.status, 201);
  const text = await (await fetch(`${listening.url}/metrics`)).text();
  const sum = (name: string) =>
    Number(new RegExp(`^${name}_sum\\{verb="POST",[^}]*resource="leases"[^}]*\\} (.*)$`, 'm').exec(text)?.[1]) * 1000;
  const all = sum('apiserver_request_duration_seconds');
  const own = sum('apiserver_request_sli_duration_seconds');
  t.true(all >= 2 * delayMs - 5, `${all}: one mutating webhook, then two validating ones at the same time`);
  t.true(own >= 0 && own <= all - 2 * delayMs + 5, `${own} of ${all}`);
});
