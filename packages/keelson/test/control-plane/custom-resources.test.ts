import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createAuthority, issueCertificate } from '@keelson/certificates';
import { isStatusError } from '@keelson/core';
import { FakeClock } from '@keelson/core/runtime';
import { listeningLogger, until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { createControlPlane } from '../../src/index.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of any kind
type Json = any;

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

interface Server {
  call(
    method: string,
    path: string,
    body?: unknown,
    contentType?: string,
  ): Promise<{ status: number; json: Json; warning: string | null }>;
  readonly url: string;
}

async function serve(t: ExecutionContext, controllers = true): Promise<Server> {
  const plane = await createControlPlane({ storage: 'memory:', controllers });
  t.teardown(() => plane.close());
  const { url } = await plane.listen();
  return {
    url,
    async call(method, path, body, contentType = 'application/json') {
      const answer = await fetch(`${url}${path}`, {
        method,
        ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'Content-Type': contentType } }),
      });
      const text = await answer.text();
      return {
        status: answer.status,
        json: text.startsWith('{') ? JSON.parse(text) : text,
        warning: answer.headers.get('warning'),
      };
    },
  };
}

const version = (name: string, spec: object, more: object = {}) => ({
  name,
  served: true,
  storage: false,
  schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties: spec } } } },
  ...more,
});

function definition(plural: string, versions: readonly object[], more: object = {}): Json {
  const kind = plural.charAt(0).toUpperCase() + plural.slice(1, -1);
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.example.com` },
    spec: { group: 'example.com', scope: 'Namespaced', names: { plural, kind }, versions, ...more },
  };
}

async function establish(server: Server, body: Json): Promise<void> {
  const { status, json } = await server.call('POST', definitions, body);
  if (status !== 201) throw new Error(json.message);
  await until(async () => {
    const { json } = await server.call('GET', `${definitions}/${body.metadata.name}`);
    return json.status?.conditions?.some((one: Json) => one.type === 'Established' && one.status === 'True');
  }, 'established');
}

/** Changes a definition and waits until the server has observed it. */
async function change(
  server: Server,
  name: string,
  edit: (spec: Json) => void,
  observed: () => Promise<boolean>,
): Promise<void> {
  const { json } = await server.call('GET', `${definitions}/${name}`);
  edit(json.spec);
  const { status, json: answer } = await server.call('PUT', `${definitions}/${name}`, json);
  if (status !== 200) throw new Error(answer.message);
  await until(observed, 'the changed definition is served');
}

test('a definition is served, with discovery, defaults, validation and unknown fields', async (t) => {
  const server = await serve(t);
  const size = { type: 'string', enum: ['small', 'large'] };
  await establish(
    server,
    definition('widgets', [version('v1', { size, n: { type: 'integer', default: 1 } }, { storage: true })]),
  );
  const path = '/apis/example.com/v1/namespaces/default/widgets';
  const created = await server.call('POST', path, {
    kind: 'Widget',
    metadata: { name: 'a' },
    spec: { size: 'small', extra: 1 },
  });
  t.is(created.status, 201);
  t.deepEqual(created.json.spec, { size: 'small', n: 1 });
  t.regex(created.warning ?? '', /unknown field \\"spec.extra\\"/);
  t.is(
    (await server.call('POST', `${path}?fieldValidation=Strict`, { metadata: { name: 'b' }, spec: { extra: 1 } }))
      .status,
    400,
  );
  const invalid = await server.call('POST', path, { metadata: { name: 'b' }, spec: { size: 1, n: 'x' } });
  t.is(invalid.status, 422);
  t.deepEqual(
    invalid.json.details.causes.map(({ field, reason }: Json) => `${field} ${reason}`),
    ['spec.size FieldValueTypeInvalid', 'spec.size FieldValueNotSupported', 'spec.n FieldValueTypeInvalid'],
  );
  const strategic = 'application/strategic-merge-patch+json';
  t.is((await server.call('PATCH', `${path}/a`, {}, strategic)).status, 415);
  const merged = await server.call('PATCH', `${path}/a`, { spec: { size: 'large' } }, 'application/merge-patch+json');
  t.like(merged.json, { spec: { size: 'large', n: 1 }, metadata: { generation: 2 } });
  const { json: resources } = await server.call('GET', '/apis/example.com/v1');
  t.like(resources.resources[0], { name: 'widgets', singularName: 'widget', kind: 'Widget', namespaced: true });
  const { json: openApi } = await server.call('GET', '/openapi/v3/apis/example.com/v1');
  t.like(openApi.components.schemas['com.example.v1.Widget'].properties.spec.properties.size, size);
});

test('the condition of a definition in a group of Kubernetes states whether its API is approved', async (t) => {
  const server = await serve(t);
  const made = definition('mugs', [version('v1', {}, { storage: true })], { group: 'x.k8s.io' });
  made.metadata = { name: 'mugs.x.k8s.io', annotations: { 'api-approved.kubernetes.io': 'unapproved, a test' } };
  t.is((await server.call('POST', definitions, made)).status, 201);
  const path = `${definitions}/mugs.x.k8s.io`;
  const condition = async () =>
    (await server.call('GET', path)).json.status.conditions?.find(
      ({ type }: Json) => type === 'KubernetesAPIApprovalPolicyConformant',
    );
  await until(condition);
  t.like(await condition(), {
    status: 'False',
    reason: 'UnapprovedAnnotation',
    message: 'not approved: "unapproved, a test"',
  });
  const annotations = { 'api-approved.kubernetes.io': 'https://github.com/kubernetes/kubernetes/pull/1' };
  await server.call('PATCH', path, { metadata: { annotations } }, 'application/merge-patch+json');
  await until(async () => (await condition())?.status === 'True');
  t.like(await condition(), {
    reason: 'ApprovedAnnotation',
    message: 'approved in https://github.com/kubernetes/kubernetes/pull/1',
  });
});

test('OpenAPI documents describe numbers or texts, embedded objects and selectable fields', async (t) => {
  const server = await serve(t);
  const fields = {
    port: { 'x-kubernetes-int-or-string': true },
    template: {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      'x-kubernetes-preserve-unknown-fields': true,
    },
    a: { type: 'string' },
  };
  const more = { storage: true, selectableFields: [{ jsonPath: '.spec.a' }] };
  await establish(server, definition('gears', [version('v1', fields, more)]));
  const { json } = await server.call('GET', '/openapi/v3/apis/example.com/v1');
  const gear = json.components.schemas['com.example.v1.Gear'];
  t.deepEqual(gear['x-kubernetes-selectable-fields'], [{ fieldPath: 'spec.a' }]);
  const { port, template } = gear.properties.spec.properties;
  t.deepEqual(port.anyOf, [{ type: 'integer' }, { type: 'string' }]);
  t.deepEqual(template.required, ['kind', 'apiVersion']);
  t.deepEqual(Object.keys(template.properties), ['apiVersion', 'kind', 'metadata']);
  const [{ $ref }] = template.properties.metadata.allOf;
  t.truthy(json.components.schemas[$ref.slice('#/components/schemas/'.length)]);
});

test('the name of a kind may contain hyphens', async (t) => {
  const server = await serve(t);
  const names = { plural: 'e2e-tests', kind: 'e2e-test' };
  await establish(server, definition('e2e-tests', [version('v1', {}, { storage: true })], { names }));
  const path = '/apis/example.com/v1/namespaces/default/e2e-tests';
  const created = await server.call('POST', path, {
    apiVersion: 'example.com/v1',
    kind: 'e2e-test',
    metadata: { name: 'a' },
  });
  t.is(created.status, 201, created.json.message);
  t.is((await server.call('GET', path)).json.kind, 'e2e-testList');
  const { json } = await server.call('GET', '/openapi/v3/apis/example.com/v1');
  t.truthy(json.components.schemas['com.example.v1.e2e-test']);
});

test('in Swagger a kind that keeps unknown fields has no properties', async (t) => {
  const server = await serve(t);
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  await establish(server, definition('opens', [{ name: 'v1', served: true, storage: true, schema }]));
  const { json } = await server.call('GET', '/openapi/v2');
  t.deepEqual(json.definitions['com.example.v1.Open'], {
    type: 'object',
    'x-kubernetes-group-version-kind': [{ group: 'example.com', version: 'v1', kind: 'Open' }],
  });
});

test('objects of an earlier schema are completed when they are read, and a watch continues', async (t) => {
  const server = await serve(t);
  await establish(
    server,
    definition('gadgets', [version('v1', { a: { type: 'string' }, old: { type: 'string' } }, { storage: true })]),
  );
  const path = '/apis/example.com/v1/namespaces/default/gadgets';
  const { json: first } = await server.call('POST', path, { metadata: { name: 'x' }, spec: { a: '1', old: 'y' } });
  const abort = new AbortController();
  t.teardown(() => abort.abort());
  const watch = await fetch(`${server.url}${path}?watch=1&resourceVersion=${first.metadata.resourceVersion}`, {
    signal: abort.signal,
  });
  let seen = '';
  void (async () => {
    for await (const chunk of watch.body as unknown as AsyncIterable<Uint8Array>) seen += Buffer.from(chunk).toString();
  })().catch(() => {});
  await change(
    server,
    'gadgets.example.com',
    (spec) => {
      spec.versions[0].schema.openAPIV3Schema.properties.spec.properties = {
        a: { type: 'string' },
        b: { type: 'integer', default: 7 },
      };
    },
    async () => (await server.call('GET', `${path}/x`)).json.spec.b === 7,
  );
  const { json } = await server.call('GET', path);
  t.deepEqual(json.items[0].spec, { a: '1', b: 7 });
  t.is(json.items[0].metadata.resourceVersion, first.metadata.resourceVersion);
  await server.call('PATCH', `${path}/x`, { spec: { b: 8 } }, 'application/merge-patch+json');
  await until(() => seen.includes('"b":8'), 'the event after the change');
  t.false(seen.includes('"old"'));
});

test('versions without a webhook differ in apiVersion alone; the storage version moves with writes', async (t) => {
  const server = await serve(t);
  const fields = { a: { type: 'string' } };
  await establish(server, definition('parts', [version('v1beta1', fields, { storage: true }), version('v1', fields)]));
  const at = (name: string) => `/apis/example.com/${name}/namespaces/default/parts`;
  const { json: created } = await server.call('POST', at('v1'), { metadata: { name: 'x' }, spec: { a: '1' } });
  t.is(created.apiVersion, 'example.com/v1');
  t.is((await server.call('GET', `${at('v1beta1')}/x`)).json.apiVersion, 'example.com/v1beta1');
  const group = await server.call('GET', '/apis/example.com');
  t.is(group.json.preferredVersion.version, 'v1');
  await change(
    server,
    'parts.example.com',
    (spec) => {
      for (const one of spec.versions) one.storage = one.name === 'v1';
    },
    async () => (await server.call('GET', `${definitions}/parts.example.com`)).json.status.storedVersions.length === 2,
  );
  t.deepEqual((await server.call('GET', `${definitions}/parts.example.com`)).json.status.storedVersions, [
    'v1beta1',
    'v1',
  ]);
  const { json: read } = await server.call('GET', `${at('v1')}/x`);
  await until(async () => {
    const { json: written } = await server.call(
      'PUT',
      `${at('v1')}/x`,
      (await server.call('GET', `${at('v1')}/x`)).json,
    );
    return written.metadata.resourceVersion !== read.metadata.resourceVersion;
  }, 'a write without changes stores the object in the new version');
  const { json: again } = await server.call('GET', `${at('v1')}/x`);
  const { json: same } = await server.call('PUT', `${at('v1')}/x`, again);
  t.is(same.metadata.resourceVersion, again.metadata.resourceVersion);
});

test('a webhook converts between versions, and its failures have a Status', async (t) => {
  const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };
  const authority = await createAuthority('conversion-authority', validity);
  const { certificate, key } = await issueCertificate(authority, {
    ...validity,
    subject: { commonName: 'conversion' },
    names: { dns: ['localhost'], ips: ['127.0.0.1'] },
    usages: ['digital signature', 'server auth'],
  });
  let calls = 0;
  let mode = 'convert';
  const hook = createServer({ cert: certificate, key }, (request, response) => {
    let text = '';
    request.on('data', (chunk) => {
      text += String(chunk);
    });
    request.on('end', () => {
      calls++;
      const { request: review, apiVersion } = JSON.parse(text);
      const convertedObjects = review.objects.map((object: Json) => {
        const { host, port, hostPort, ...spec } = object.spec;
        const v2 = review.desiredAPIVersion === 'example.com/v2';
        const [h, p] = String(hostPort ?? '').split(':');
        const changed = v2 ? { ...spec, host: h, port: p } : { ...spec, hostPort: `${host}:${port}` };
        const metadata = mode === 'rename' ? { ...object.metadata, name: 'other' } : object.metadata;
        return { ...object, apiVersion: review.desiredAPIVersion, metadata, spec: changed };
      });
      const result = mode === 'fail' ? { status: 'Failed', message: 'no conversion today' } : { status: 'Success' };
      response.end(
        JSON.stringify({
          kind: 'ConversionReview',
          apiVersion,
          response: { uid: review.uid, result, convertedObjects },
        }),
      );
    });
  });
  await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve));
  t.teardown(() => hook.close());
  const clientConfig = {
    url: `https://127.0.0.1:${(hook.address() as AddressInfo).port}/convert`,
    caBundle: Buffer.from(authority.certificate).toString('base64'),
  };
  // Without the garbage collector, which reads the objects as well: what it has read is not converted again.
  const server = await serve(t, false);
  const text = { type: 'string' };
  await establish(
    server,
    definition(
      'hosts',
      [version('v1', { hostPort: text }, { storage: true }), version('v2', { host: text, port: text })],
      {
        conversion: { strategy: 'Webhook', webhook: { clientConfig, conversionReviewVersions: ['v1'] } },
      },
    ),
  );
  const at = (name: string) => `/apis/example.com/${name}/namespaces/default/hosts`;
  const { json: created } = await server.call('POST', at('v2'), {
    metadata: { name: 'x' },
    spec: { host: 'h', port: '1' },
  });
  t.deepEqual(created.spec, { host: 'h', port: '1' }, created.message);
  t.deepEqual((await server.call('GET', `${at('v1')}/x`)).json.spec, { hostPort: 'h:1' });
  t.deepEqual((await server.call('GET', at('v2'))).json.items[0].spec, { host: 'h', port: '1' });
  t.true(calls > 0);
  await server.call('PATCH', `${at('v1')}/x`, { spec: { hostPort: 'h:2' } }, 'application/merge-patch+json');
  mode = 'fail';
  const failed = await server.call('GET', `${at('v2')}/x`);
  t.is(failed.status, 500);
  t.regex(failed.json.message, /conversion webhook for example.com\/v1, Kind=Host failed: no conversion today$/);
  mode = 'rename';
  t.regex((await server.call('GET', `${at('v2')}/x`)).json.message, /must have the same name: x != other/);
  mode = 'convert';
  t.deepEqual((await server.call('GET', `${at('v2')}/x`)).json.spec, { host: 'h', port: '2' });
});

test('names in use are not accepted until they are free', async (t) => {
  const server = await serve(t);
  const versions = [version('v1', {}, { storage: true })];
  await establish(server, definition('cups', versions, { names: { plural: 'cups', kind: 'Cup', shortNames: ['cc'] } }));
  await server.call(
    'POST',
    definitions,
    definition('cans', versions, { names: { plural: 'cans', kind: 'Cup', shortNames: ['cc'] } }),
  );
  const conditions = async () =>
    (await server.call('GET', `${definitions}/cans.example.com`)).json.status?.conditions ?? [];
  await until(async () => (await conditions()).length > 0, 'conditions');
  t.like((await conditions())[0], { type: 'NamesAccepted', status: 'False', message: '"CupList" is already in use' });
  t.is((await server.call('GET', '/apis/example.com/v1/cans')).status, 404);
  await server.call('DELETE', `${definitions}/cups.example.com`);
  await until(async () => (await server.call('GET', '/apis/example.com/v1/cans')).status === 200, 'the names are free');
});

test('a deleted definition waits for its objects', async (t) => {
  const server = await serve(t);
  await establish(server, definition('jars', [version('v1', {}, { storage: true })]));
  const path = '/apis/example.com/v1/namespaces/default/jars';
  await server.call('POST', path, { metadata: { name: 'free' } });
  await server.call('POST', path, { metadata: { name: 'held', finalizers: ['example.com/wait'] } });
  await server.call('DELETE', `${definitions}/jars.example.com`);
  await until(async () => (await server.call('GET', path)).json.items?.length === 1, 'the free object is gone');
  const refused = await server.call('POST', path, { metadata: { name: 'late' } });
  t.is(refused.status, 403);
  t.regex(refused.json.message, /create not allowed while custom resource definition is terminating$/);
  const { json } = await server.call('GET', `${definitions}/jars.example.com`);
  t.deepEqual(json.metadata.finalizers, ['customresourcecleanup.apiextensions.k8s.io']);
  await server.call('PATCH', `${path}/held`, { metadata: { finalizers: null } }, 'application/merge-patch+json');
  await until(async () => (await server.call('GET', path)).status === 404, 'the resource is gone');
});

test('a deleted namespace, a quota and an owner concern custom objects as any other', async (t) => {
  const server = await serve(t);
  await server.call('POST', '/api/v1/namespaces', { metadata: { name: 'team' } });
  const quota = { metadata: { name: 'q' }, spec: { hard: { 'count/pots.example.com': '2' } } };
  await server.call('POST', '/api/v1/namespaces/team/resourcequotas', quota);
  await establish(server, definition('pots', [version('v1', {}, { storage: true })]));
  const path = '/apis/example.com/v1/namespaces/team/pots';
  // As in Kubernetes, objects are refused until their kind has been counted.
  await until(
    async () =>
      (await server.call('GET', '/api/v1/namespaces/team/resourcequotas/q')).json.status?.used?.[
        'count/pots.example.com'
      ] === '0',
    'the new kind is counted',
  );
  const { json: owner } = await server.call('POST', path, { metadata: { name: 'owner' } });
  const ownerReferences = [{ apiVersion: 'example.com/v1', kind: 'Pot', name: 'owner', uid: owner.metadata.uid }];
  await server.call('POST', path, { metadata: { name: 'dependent', ownerReferences } });
  const third = await server.call('POST', path, { metadata: { name: 'third' } });
  t.is(third.status, 403);
  t.regex(third.json.message, /exceeded quota: q, requested: count\/pots.example.com=1/);
  await server.call('DELETE', `${path}/owner`);
  await until(async () => (await server.call('GET', `${path}/dependent`)).status === 404, 'the dependent is collected');
  await server.call('POST', path, { metadata: { name: 'left' } });
  await server.call('DELETE', '/api/v1/namespaces/team');
  await until(
    async () => (await server.call('GET', '/api/v1/namespaces/team')).status === 404,
    'the namespace is gone',
  );
  t.deepEqual((await server.call('GET', '/apis/example.com/v1/pots')).json.items, []);
});

test('the garbage collector follows kinds half a second after a change of their definitions', async (t) => {
  const clock = new FakeClock();
  const logger = listeningLogger();
  const plane = await createControlPlane({ storage: 'memory:', controllers: true, clock, logger });
  t.teardown(() => plane.close());
  const dynamic = (group: string, resource: string) => plane.api.dynamic({ group, version: 'v1', resource });
  const isGone = (read: Promise<unknown>) =>
    read.then(
      () => false,
      (error: unknown) => isStatusError(error, 'NotFound'),
    );
  const all = dynamic('apiextensions.k8s.io', 'customresourcedefinitions');
  await all.create(definition('gadgets', [version('v1', {}, { storage: true })]));
  const gadgets = dynamic('example.com', 'gadgets').namespace('default');
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'none', uid: 'none' }];
  const abandoned = { metadata: { name: 'abandoned', ownerReferences } };
  await until(() => gadgets.create(abandoned), 'the kind is served');
  const before = clock.monotonic();
  // Small steps: the collector works in real time.
  await until(() => {
    clock.advance(20);
    return isGone(gadgets.get('abandoned'));
  }, 'the object without its owner is deleted');
  t.true(clock.monotonic() - before < 5_000, 'earlier than by the discovery every five seconds');

  await all.delete('gadgets.example.com');
  await until(() => isGone(all.get('gadgets.example.com')), 'the definition is deleted');
  const deletedAt = clock.monotonic();
  await until(() => {
    clock.advance(20);
    return clock.monotonic() - deletedAt > 900;
  }, 'the collector has discovered that the kind is not served');
  // A watch that fails for a second is reported.
  clock.advance(2_000);
  await new Promise(setImmediate);
  t.deepEqual(logger.lines, []);
});

test('wrong definitions are rejected with all their causes', async (t) => {
  const server = await serve(t);
  const causes = async (body: Json) => {
    const { status, json } = await server.call('POST', definitions, body);
    t.is(status, 422);
    return json.details.causes.map(({ field, message }: Json) => `${field}: ${message}`);
  };
  const good = definition('mugs', [version('v1', {}, { storage: true })]);
  t.deepEqual(await causes({ ...good, metadata: { name: 'x.example.com' } }), [
    'metadata.name: Invalid value: "x.example.com": must be spec.names.plural+"."+spec.group',
  ]);
  t.deepEqual(
    await causes(definition('mugs', [version('v1', {}), version('V2', {})], { scope: 'Everywhere', group: 'example' })),
    [
      'metadata.name: Invalid value: "mugs.example.com": must be spec.names.plural+"."+spec.group',
      'spec.group: Invalid value: "example": should be a domain with at least one dot',
      'spec.scope: Unsupported value: "Everywhere": supported values: "Cluster", "Namespaced"',
      "spec.versions[1].name: Invalid value: \"V2\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
      'spec.versions: Invalid value: ["v1","V2"]: must have exactly one version marked as storage version',
      'status.storedVersions: Invalid value: []: must have at least one stored version',
    ],
  );
  const more = {
    storage: true,
    additionalPrinterColumns: [{ name: 'A', type: 'text', jsonPath: 'spec' }],
    selectableFields: [{ jsonPath: '.spec.none' }, { jsonPath: 'spec.none' }],
    subresources: { scale: { specReplicasPath: '.status.n', statusReplicasPath: '' } },
  };
  t.deepEqual(await causes(definition('mugs', [version('v1', {}, more)])), [
    'spec.subresources.scale.specReplicasPath: Invalid value: ".status.n": should be a json path under .spec',
    'spec.subresources.scale.statusReplicasPath: Required value',
    'spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string',
    'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec": must be a simple json path starting with .',
    'spec.selectableFields[0].jsonPath: Invalid value: ".spec.none": is an invalid path: does not refer to a valid field',
    'spec.selectableFields[1].jsonPath: Invalid value: "spec.none": is an invalid path: expected [ or . but got: spec',
  ]);
  const protectedGroup = definition('mugs', [version('v1', {}, { storage: true })], { group: 'x.k8s.io' });
  protectedGroup.metadata.name = 'mugs.x.k8s.io';
  t.regex(
    (await causes(protectedGroup))[0],
    /^metadata.annotations\[api-approved.kubernetes.io\]: Required value: protected groups must/,
  );
});
