import { encodeProtobufObject, parseProtobufBody } from '@keelson/core/internal';
import { Binding, EventsV1Event, Pod } from '@keelson/kinds';
import test, { type ExecutionContext } from 'ava';
import { serveReal } from './support/real-plane.ts';
import { call, type Reply } from './support/serve.ts';

const core = '/api/v1/namespaces/default';
const protobuf = 'application/vnd.kubernetes.protobuf';
const container = { name: 'main', image: 'app:1' };

type Send = (method: string, path: string, body?: object | Buffer, type?: string) => Promise<Reply>;

async function served(t: ExecutionContext): Promise<Send> {
  const { port } = await serveReal(t);
  return (method, path, body, type) =>
    call(port, method, path, {
      ...(body === undefined ? {} : { body: Buffer.isBuffer(body) ? body : JSON.stringify(body) }),
      ...(type === undefined ? {} : { headers: { 'content-type': type } }),
    });
}

async function withPod(send: Send, name: string, more: object = {}): Promise<void> {
  await send('POST', `${core}/pods`, { metadata: { name }, spec: { containers: [container] }, ...more });
}

test('evictions of policy/v1, policy/v1beta1 and without a version are accepted, in JSON and in protobuf', async (t) => {
  const send = await served(t);
  const evictionSchema = Pod.subresources.flatMap((one) =>
    one.name === 'eviction' && 'schema' in one ? [one.schema] : [],
  )[0];
  if (evictionSchema === undefined) return t.fail();
  for (const apiVersion of ['policy/v1', 'policy/v1beta1', undefined]) {
    const body = { ...(apiVersion === undefined ? {} : { apiVersion, kind: 'Eviction' }), metadata: { name: 'a' } };
    await withPod(send, 'a');
    const dry = await send('POST', `${core}/pods/a/eviction?dryRun=All`, body);
    t.is(dry.status, 201, dry.text);
    t.is((await send('GET', `${core}/pods/a`)).status, 200, 'a dry run keeps the pod');
    t.is((await send('POST', `${core}/pods/a/eviction`, body)).status, 201);
    t.is((await send('GET', `${core}/pods/a`)).status, 404);
    if (apiVersion === undefined) continue;
    await withPod(send, 'a');
    const bytes = encodeProtobufObject(evictionSchema, apiVersion, 'Eviction', body);
    const answer = await send('POST', `${core}/pods/a/eviction`, bytes, protobuf);
    t.is(answer.status, 201, answer.text);
    t.is((await send('GET', `${core}/pods/a`)).status, 404);
  }
  await withPod(send, 'a');
  const wrong = await send('POST', `${core}/pods/a/eviction`, { apiVersion: 'policy/v1alpha1', kind: 'Eviction' });
  t.is(wrong.status, 400);
  t.regex(wrong.json.message, /does not match the expected API version \(policy\/v1\)/);
});

test('a Binding posted to its collection binds the pod of its name, like the subresource', async (t) => {
  const send = await served(t);
  await withPod(send, 'a');
  const binding = { metadata: { name: 'a', annotations: { by: 'me' } }, target: { kind: 'Node', name: 'n1' } };
  t.is((await send('POST', `${core}/bindings?dryRun=All`, binding)).status, 201);
  t.is((await send('GET', `${core}/pods/a`)).json.spec.nodeName, undefined);
  const bytes = encodeProtobufObject(Binding.schema, 'v1', 'Binding', binding);
  const answer = await send('POST', `${core}/bindings`, bytes, protobuf);
  t.is(answer.status, 201, answer.text);
  t.like(answer.json, { kind: 'Status', status: 'Success', code: 201 });
  const pod = (await send('GET', `${core}/pods/a`)).json;
  t.is(pod.spec.nodeName, 'n1');
  t.is(pod.metadata.annotations.by, 'me');
  t.is(pod.status.conditions.at(-1).type, 'PodScheduled');
  t.is((await send('POST', `${core}/bindings`, binding)).status, 409);
  t.is((await send('POST', `${core}/bindings`, { ...binding, metadata: { name: 'b' } })).status, 404);
  t.is((await send('POST', `${core}/bindings`, { target: binding.target })).status, 400);
  t.is((await send('POST', `${core}/bindings`, { metadata: { name: 'a' }, target: {} })).status, 422);
  t.is((await send('GET', `${core}/bindings`)).status, 405);
  const rows: { name: string }[] = (await send('GET', '/api/v1')).json.resources;
  t.deepEqual(
    rows.find(({ name }) => name === 'bindings'),
    { name: 'bindings', singularName: 'binding', namespaced: true, kind: 'Binding', verbs: ['create'] } as never,
  );
});

const events = '/apis/events.k8s.io/v1/namespaces/default/events';
const newEvent = {
  metadata: { name: 'e' },
  eventTime: '2026-01-02T12:00:00.000001Z',
  reportingController: 'example.com/controller',
  reportingInstance: 'one',
  action: 'Starting',
  reason: 'Started',
  regarding: { kind: 'Pod', namespace: 'default', name: 'p' },
  note: 'it runs',
  type: 'Normal',
};

test('an event is the same object in events.k8s.io and in the core group, with the fields of each', async (t) => {
  const send = await served(t);
  const created = await send('POST', events, newEvent);
  t.is(created.status, 201, created.text);
  t.like(created.json, { ...newEvent, metadata: { name: 'e' }, apiVersion: 'events.k8s.io/v1', deprecatedSource: {} });
  const old = (await send('GET', `${core}/events/e`)).json;
  t.is(old.metadata.uid, created.json.metadata.uid);
  t.like(old, {
    apiVersion: 'v1',
    involvedObject: newEvent.regarding,
    message: 'it runs',
    reportingComponent: 'example.com/controller',
    reportingInstance: 'one',
    eventTime: newEvent.eventTime,
  });
  t.false('note' in old || 'regarding' in old);
  await send('POST', `${core}/events`, {
    metadata: { name: 'old' },
    involvedObject: { kind: 'Node', name: 'n' },
    source: { component: 'kubelet', host: 'h' },
    message: 'text',
    count: 3,
    firstTimestamp: '2026-01-02T12:00:00Z',
    lastTimestamp: '2026-01-02T12:00:05Z',
  });
  const shown = (await send('GET', `${events}/old`)).json;
  t.like(shown, {
    regarding: { kind: 'Node', name: 'n' },
    deprecatedSource: { component: 'kubelet', host: 'h' },
    deprecatedCount: 3,
    deprecatedFirstTimestamp: '2026-01-02T12:00:00Z',
    deprecatedLastTimestamp: '2026-01-02T12:00:05Z',
    note: 'text',
    eventTime: null,
  });
  const named = async (selector: string) => {
    const list = (await send('GET', `${events}?fieldSelector=${encodeURIComponent(selector)}`)).json;
    return list.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
  };
  t.deepEqual(await named('regarding.kind=Pod,reportingController=example.com/controller'), ['e']);
  t.deepEqual(await named('regarding.name!=p'), ['old']);
  t.is((await send('GET', `${events}?fieldSelector=involvedObject.kind%3DPod`)).status, 400);
  t.is((await send('GET', `${core}/events?fieldSelector=regarding.kind%3DPod`)).status, 400);
});

test('an event is encoded in protobuf with its published field numbers, and as rows of a table', async (t) => {
  const { port } = await serveReal(t);
  const body = encodeProtobufObject(EventsV1Event.schema, 'events.k8s.io/v1', 'Event', newEvent);
  const answer = await call(port, 'POST', events, { body, headers: { 'content-type': protobuf, accept: protobuf } });
  t.is(answer.status, 201);
  t.like(parseProtobufBody(answer.body, EventsV1Event), { note: 'it runs', eventTime: newEvent.eventTime });
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const cells = async (path: string) => (await call(port, 'GET', path, { headers: { accept } })).json.rows[0].cells;
  t.deepEqual(await cells(events), await cells(`${core}/events`));
  t.true((await cells(events)).includes('pod/p'));
});

test('new events of events.k8s.io are validated by its rules, and only their series can change', async (t) => {
  const send = await served(t);
  const { eventTime: _, ...rest } = newEvent;
  const refused = await send('POST', events, { ...rest, type: 'Odd', deprecatedCount: 1, series: { count: 1 } });
  t.is(refused.status, 422);
  const fields = refused.json.details.causes.map(({ field }: { field: string }) => field);
  t.deepEqual(fields.sort(), ['count', 'eventTime', 'series.count', 'series.lastObservedTime', 'type']);
  const created = (await send('POST', events, newEvent)).json;
  const changed = await send('PUT', `${events}/e`, { ...created, note: 'other' });
  t.is(changed.status, 422);
  t.regex(changed.json.message, /message: Invalid value: "other": field is immutable/);
  const merge = 'application/merge-patch+json';
  const series = { count: 2, lastObservedTime: '2026-01-02T12:01:00.000000Z' };
  const patched = await send('PATCH', `${events}/e`, { series }, merge);
  t.is(patched.status, 200, patched.text);
  t.deepEqual((await send('GET', `${core}/events/e`)).json.series, series);
  await send('POST', `${core}/events`, { metadata: { name: 'old' }, involvedObject: {}, count: 1, message: 'm' });
  const legacy = await send('PATCH', `${events}/old`, { metadata: { labels: { a: 'b' } } }, merge);
  t.is(legacy.status, 200, legacy.text);
});

const debuggers = [{ name: 'debug', image: 'busybox:1', targetContainerName: 'main', stdin: true }];

test('ephemeral containers are read, replaced and patched only through their subresource', async (t) => {
  const send = await served(t);
  await withPod(send, 'a');
  const path = `${core}/pods/a/ephemeralcontainers`;
  const strategic = 'application/strategic-merge-patch+json';
  const added = await send('PATCH', path, { spec: { ephemeralContainers: debuggers } }, strategic);
  t.is(added.status, 200, added.text);
  t.like(added.json.spec.ephemeralContainers[0], {
    name: 'debug',
    imagePullPolicy: 'IfNotPresent',
    terminationMessagePolicy: 'File',
    targetContainerName: 'main',
  });
  const read = (await send('GET', path)).json;
  t.is(read.kind, 'Pod');
  const more = {
    ...read,
    spec: {
      containers: [{ ...container, image: 'other' }],
      ephemeralContainers: [...debuggers, { name: 'two', image: 'x:1' }],
    },
  };
  const replaced = await send('PUT', path, more);
  t.is(replaced.status, 200, replaced.text);
  t.is(replaced.json.spec.ephemeralContainers.length, 2);
  t.is(replaced.json.spec.containers[0].image, 'app:1', 'nothing else of the pod changes');
  const labelled = await send('PATCH', `${core}/pods/a`, { metadata: { labels: { a: 'b' } } }, strategic);
  t.is(labelled.status, 200, 'other writes of such a pod are accepted');
  const outside = await send(
    'PATCH',
    `${core}/pods/a`,
    { spec: { ephemeralContainers: [{ name: 'x', image: 'x' }] } },
    strategic,
  );
  t.is(outside.status, 422);
  const born = await send('POST', `${core}/pods`, {
    metadata: { name: 'b' },
    spec: { containers: [container], ephemeralContainers: debuggers },
  });
  t.regex(born.json.message, /spec.ephemeralContainers: Forbidden: cannot be set on create/);
});

test('ephemeral containers are validated: none is changed or removed, and only permitted fields are set', async (t) => {
  const send = await served(t);
  await withPod(send, 'a');
  const put = async (ephemeralContainers: object[], name = 'a') => {
    const { metadata } = (await send('GET', `${core}/pods/${name}`)).json;
    const spec = { containers: [container], ephemeralContainers };
    return send('PUT', `${core}/pods/${name}/ephemeralcontainers`, { metadata, spec });
  };
  t.is((await put(debuggers)).status, 200);
  t.regex((await put([])).json.message, /Forbidden: existing ephemeral containers "debug" may not be removed/);
  t.regex(
    (await put([{ ...debuggers[0], image: 'other' }])).json.message,
    /Forbidden: existing ephemeral containers "debug" may not be changed/,
  );
  const causes = async (more: object) => {
    const { json } = await put([...debuggers, { name: 'x', image: 'x:1', ...more }]);
    return json.details.causes.map(({ field }: { field: string }) => field.replace('spec.ephemeralContainers[1].', ''));
  };
  t.deepEqual(await causes({ name: 'main' }), ['name']);
  t.deepEqual(await causes({ targetContainerName: 'none' }), ['targetContainerName']);
  t.deepEqual(await causes({ ports: [{ containerPort: 80 }] }), ['ports']);
  t.deepEqual(await causes({ livenessProbe: { exec: { command: ['a'] } } }), ['livenessProbe']);
  t.deepEqual(await causes({ resources: { limits: { cpu: '1' } } }), ['resources']);
  await withPod(send, 'static', {
    metadata: { name: 'static', annotations: { 'kubernetes.io/config.mirror': 'x' } },
    spec: { containers: [container], nodeName: 'n' },
  });
  t.regex((await put(debuggers, 'static')).json.message, /static pods do not support ephemeral containers/);
});
