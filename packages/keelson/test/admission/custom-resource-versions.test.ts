import { isStatusError } from '@keelson/core';
import {
  ConfigMap,
  CustomResourceDefinition,
  MutatingWebhookConfiguration,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
} from '@keelson/kinds';
import { until } from '@keelson/test-support';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { type ControlPlane, createControlPlane } from '../../src/index.ts';
import { patchOf, startWebhookServer, type WebhookServer } from './webhook-server.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of any kind
type Json = any;

interface Shared {
  readonly plane: ControlPlane;
  readonly url: string;
  readonly server: WebhookServer;
}
const test = anyTest as TestFn<Shared>;

/** Creates a definition with the versions v1, which is stored, and v2, between which a webhook converts. */
async function define({ context: { plane, server } }: ExecutionContext<Shared>, plural: string): Promise<void> {
  const text = { type: 'string' };
  const version = (name: string, properties: object) => ({
    ...{ name, served: true, storage: name === 'v1' },
    schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties } } } },
  });
  const clientConfig = { url: `https://127.0.0.1:${server.port}/convert-${plural}`, caBundle: server.caBundle };
  const kind = plural.charAt(0).toUpperCase() + plural.slice(1, -1);
  const client = plane.client(CustomResourceDefinition);
  await client.create({
    metadata: { name: `${plural}.example.com` },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural, kind },
      versions: [
        version('v1', { hostPort: text, more: { type: 'object' } }),
        version('v2', { host: text, port: text, more: { type: 'object' } }),
      ],
      conversion: { strategy: 'Webhook', webhook: { clientConfig, conversionReviewVersions: ['v1'] } },
    },
  } as unknown as CustomResourceDefinition);
  convertOn(server, plural);
  await until(async () =>
    (await client.get(`${plural}.example.com`)).status?.conditions?.some(
      ({ type, status }) => type === 'Established' && status === 'True',
    ),
  );
}

function convertOn(server: WebhookServer, plural: string, fails: () => boolean = () => false): void {
  server.on(`/convert-${plural}`, (review: Json) => (response) => {
    const convertedObjects = review.objects.map(({ spec: { hostPort, host, port, ...spec }, ...object }: Json) => {
      const [h, p] = String(hostPort ?? '').split(':');
      const isV2 = review.desiredAPIVersion === 'example.com/v2';
      const converted = isV2 ? { ...spec, host: h, port: p } : { ...spec, hostPort: `${host}:${port}` };
      return { ...object, apiVersion: review.desiredAPIVersion, spec: converted };
    });
    const result = fails() ? { status: 'Failed', message: 'no conversion today' } : { status: 'Success' };
    const answer = { uid: review.uid, result, convertedObjects };
    response.end(JSON.stringify({ kind: 'ConversionReview', apiVersion: 'apiextensions.k8s.io/v1', response: answer }));
  });
}

async function call(
  { context: { url } }: ExecutionContext<Shared>,
  method: string,
  path: string,
  body?: unknown,
  type = 'application/json',
): Promise<{ readonly status: number; readonly json: Json }> {
  const headers = { 'Content-Type': type };
  const sent = body === undefined ? {} : { body: JSON.stringify(body), headers };
  const answer = await fetch(`${url}/apis/example.com/${path}`, { method, ...sent });
  return { status: answer.status, json: await answer.json() };
}

const at = (version: string, plural: string, name = '') =>
  `${version}/namespaces/default/${plural}${name === '' ? '' : `/${name}`}`;

/** Installs a mutating webhook for a kind, which changes objects with the label `test` as `operation` states. */
async function mutate(
  { context: { plane, server } }: ExecutionContext<Shared>,
  name: string,
  [apiGroup, resource]: readonly [string, string],
  operation: object,
): Promise<void> {
  server.on(`/${name}`, () => patchOf(operation));
  await plane.client(MutatingWebhookConfiguration).create({
    metadata: { name },
    webhooks: [
      {
        name: `${name}.example.com`,
        clientConfig: { url: `https://127.0.0.1:${server.port}/${name}`, caBundle: server.caBundle },
        rules: [{ operations: ['CREATE'], apiGroups: [apiGroup], apiVersions: ['v1'], resources: [resource] }],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
        objectSelector: { matchLabels: { test: name } },
      },
    ],
  } as unknown as MutatingWebhookConfiguration);
}

test.before(async (t) => {
  const plane = await createControlPlane({ controllers: false });
  const { url } = await plane.listen();
  t.context = Object.assign(t.context, { plane, url, server: await startWebhookServer() });
});
test.after.always(async (t) => {
  await t.context.plane?.close();
  t.context.server?.close();
});

test('a policy for one version of a custom resource examines requests in the others', async (t) => {
  await define(t, 'hosts');
  const { plane } = t.context;
  const name = 'hosts';
  await plane.client(ValidatingAdmissionPolicyBinding).create({
    metadata: { name },
    spec: { policyName: name, validationActions: ['Deny'] },
  });
  await plane.client(ValidatingAdmissionPolicy).create({
    metadata: { name },
    spec: {
      matchConstraints: {
        resourceRules: [
          {
            operations: ['CREATE', 'UPDATE'],
            apiGroups: ['example.com'],
            apiVersions: ['v1'],
            resources: ['hosts'],
          },
        ],
      },
      validations: [{ expression: "object.spec.hostPort != 'bad:1'", message: 'bad host' }],
    },
  });
  const bad = { metadata: { name: 'x' }, spec: { hostPort: 'bad:1' } };
  await until(async () => (await call(t, 'POST', `${at('v1', 'hosts')}?dryRun=All`, bad)).status === 422);
  const spec = { host: 'bad', port: '1' };
  const denied = await call(t, 'POST', at('v2', 'hosts'), { metadata: { name: 'x' }, spec });
  t.is(denied.status, 422);
  t.regex(denied.json.message, /^hosts\.example\.com "x" is forbidden: .* denied request: bad host$/);
  const made = await call(t, 'POST', at('v2', 'hosts'), { metadata: { name: 'x' }, spec: { ...spec, host: 'good' } });
  t.deepEqual([made.status, made.json.spec], [201, { host: 'good', port: '1' }]);
  const patched = await call(t, 'PATCH', at('v2', 'hosts', 'x'), { spec }, 'application/merge-patch+json');
  t.is(patched.status, 422);
  convertOn(t.context.server, 'hosts', () => true);
  const failed = await call(t, 'POST', at('v2', 'hosts'), { metadata: { name: 'y' }, spec });
  t.regex(failed.json.message, /failed to configure binding: failed to convert object version: .*no conversion today$/);
});

test('a webhook for one version of a custom resource changes the objects of the others', async (t) => {
  await define(t, 'sites');
  const operation = { op: 'replace', path: '/spec/hostPort', value: 'changed:2' };
  await mutate(t, 'sites', ['example.com', 'sites'], operation);
  const site = { metadata: { name: 'x', labels: { test: 'sites' } }, spec: { host: 'h', port: '1' } };
  await until(async () => {
    const { json } = await call(t, 'POST', `${at('v2', 'sites')}?dryRun=All`, site);
    return json.spec.host === 'changed';
  });
  const made = await call(t, 'POST', at('v2', 'sites'), site);
  t.deepEqual([made.json.apiVersion, made.json.spec], ['example.com/v2', { host: 'changed', port: '2' }]);
  const [review] = t.context.server.reviews.get('/sites') ?? [];
  t.like(review, {
    kind: { group: 'example.com', version: 'v1', kind: 'Site' },
    requestKind: { group: 'example.com', version: 'v2', kind: 'Site' },
    object: { apiVersion: 'example.com/v1', spec: { hostPort: 'h:1' } },
  });
});

test('the objects of a deleted definition disappear without its conversion webhook', async (t) => {
  await define(t, 'gones');
  t.is((await call(t, 'POST', at('v1', 'gones'), { metadata: { name: 'x' }, spec: { hostPort: 'h:1' } })).status, 201);
  convertOn(t.context.server, 'gones', () => true);
  const definitions = t.context.plane.client(CustomResourceDefinition);
  await definitions.delete('gones.example.com');
  await until(() =>
    definitions.get('gones.example.com').then(
      () => false,
      (error: unknown) => isStatusError(error, 'NotFound'),
    ),
  );
  t.is(t.context.server.reviews.get('/convert-gones'), undefined);
});

test('a delete succeeds when the object was converted once', async (t) => {
  await define(t, 'onces');
  t.is((await call(t, 'POST', at('v1', 'onces'), { metadata: { name: 'x' }, spec: { hostPort: 'h:1' } })).status, 201);
  let calls = 0;
  convertOn(t.context.server, 'onces', () => ++calls > 1);
  t.deepEqual([(await call(t, 'DELETE', at('v2', 'onces', 'x'))).status, calls], [200, 1]);
  t.is((await call(t, 'GET', at('v1', 'onces', 'x'))).status, 404);
});

test('a webhook cannot change the type of an object', async (t) => {
  await define(t, 'fixes');
  await mutate(t, 'fixes', ['example.com', 'fixes'], { op: 'replace', path: '/kind', value: 'Other' });
  await mutate(t, 'maps', ['', 'configmaps'], { op: 'replace', path: '/kind', value: 'Secret' });
  const metadata = { name: 'x', labels: { test: 'fixes' } };
  const answer = async () =>
    call(t, 'POST', `${at('v1', 'fixes')}?dryRun=All`, { metadata, spec: { hostPort: 'h:1' } });
  await until(async () => (await answer()).status !== 201);
  const { status, json } = await answer();
  t.is(status, 422);
  t.is(json.message, 'Fixe.example.com "x" is invalid: kind: Invalid value: "Other": must be Fixe');
  const object = { metadata: { name: 'x', namespace: 'default', labels: { test: 'maps' } } } as ConfigMap;
  const error = await until(() =>
    t.context.plane
      .client(ConfigMap)
      .namespace('default')
      .create(object, { dryRun: true })
      .then(
        () => undefined,
        (reason: unknown) => reason as object,
      ),
  );
  t.like(error, {
    code: 500,
    message: 'Internal error occurred: converting (v1.Secret) to (core.ConfigMap): unknown conversion',
  });
});

test('a null for a field that is not nullable is rejected in an apply and in the patch of a webhook', async (t) => {
  await define(t, 'nulls');
  const text = 'spec.more: Invalid value: "null": spec.more in body must be of type object: "null"';
  const message = `Null.example.com "x" is invalid: ${text}`;
  const object = { apiVersion: 'example.com/v1', kind: 'Null', metadata: { name: 'x' }, spec: { more: null } };
  const path = `${at('v1', 'nulls', 'x')}?fieldManager=m`;
  const applied = await call(t, 'PATCH', path, object, 'application/apply-patch+yaml');
  t.deepEqual([applied.status, applied.json.message], [422, message]);
  const made = await call(t, 'POST', `${at('v1', 'nulls')}?dryRun=All`, object);
  t.deepEqual([made.status, made.json.spec], [201, {}]);
  await mutate(t, 'nulls', ['example.com', 'nulls'], { op: 'add', path: '/spec/more', value: null });
  const labelled = { ...object, metadata: { name: 'x', labels: { test: 'nulls' } } };
  await until(async () => {
    const { status, json } = await call(t, 'POST', `${at('v1', 'nulls')}?dryRun=All`, labelled);
    return status === 422 && json.message === message;
  });
});
