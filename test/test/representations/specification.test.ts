import type { IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import { type KeelsonProcess, removeDirectory, startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';
import { PlainHttp, type PlainReply, type PlainRequest } from '../../src/plain-http.ts';
import { collectionPath, type SpecifiedKind, specifiedKinds } from '../../src/specified-kinds.ts';
import { type Document, type WireEvent, type WireMedia, wireMedia } from '../../src/wire-media.ts';

/* Every row of the specification of the resource API, over HTTP, in every representation it names. */

const { json, yaml, protobuf } = wireMedia as Record<'json' | 'yaml' | 'protobuf', WireMedia>;
const media = [json, yaml, protobuf];
const core = '/api/v1';
const extensions = '/apis/extensions/v1beta1';
const patchTypes = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
];

let server: KeelsonProcess;
let http: PlainHttp;

test.before(async () => {
  server = await startKeelson(await temporaryDirectory(), ['--insecure', '--storage', 'memory:']);
  http = new PlainHttp(server.url);
});
test.after.always(async () => {
  http?.close();
  if (server === undefined) return;
  await server.stop();
  await removeDirectory(server.data);
});

let namespaces = 0;

async function newNamespace(): Promise<string> {
  namespaces += 1;
  const name = `spec-${namespaces}`;
  await ok(201, 'POST', `${core}/namespaces`, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  return name;
}

/** Sends a document in one media type and requests the response in the same. */
function send(method: string, path: string, document?: object, as: WireMedia = json, extra: PlainRequest = {}) {
  const body = document === undefined ? {} : { body: as.encode(document) };
  const type = document === undefined ? {} : { 'content-type': as.type };
  return http.send(method, path, { ...extra, ...body, headers: { accept: as.type, ...type, ...extra.headers } });
}

function read(reply: PlainReply, as: WireMedia, what: string): Document {
  const type = reply.headers['content-type'];
  if (type !== as.type) throw new Error(`${what}: ${reply.status} in ${type}: ${reply.body.toString().slice(0, 400)}`);
  return as.decode(reply.body);
}

/** Sends a request, requires the status, and returns the document. */
async function ok(status: number, method: string, path: string, document?: object, as = json, extra?: PlainRequest) {
  const reply = await send(method, path, document, as, extra);
  const what = `${method} ${path} in ${as.name}`;
  const answer = read(reply, as, what);
  if (reply.status !== status) throw new Error(`${what}: ${reply.status} ${JSON.stringify(answer).slice(0, 400)}`);
  return answer;
}

const patch = (type: string) => ({ headers: { 'content-type': type } });

/** A patch of each type that sets an annotation; the response is in `as`. */
async function patchAll(t: ExecutionContext, path: string, as: WireMedia): Promise<void> {
  for (const [i, type] of patchTypes.entries()) {
    const annotations = { patched: `p${i}` };
    const operations = [{ op: 'add', path: '/metadata/annotations', value: annotations }];
    const body = JSON.stringify(i === 0 ? operations : { metadata: { annotations } });
    const reply = await http.send('PATCH', path, { body, headers: { accept: as.type, 'content-type': type } });
    t.is(reply.status, 200, `${path} ${type}`);
    t.is(read(reply, as, path).metadata?.annotations?.['patched'], `p${i}`);
  }
}

const named = (document: Document, name: string) =>
  (document['items'] as Document[]).find(({ metadata }) => metadata?.name === name);

/** The object in JSON, without the fields that a list in protobuf has once for all items. */
function bare({ kind: _kind, apiVersion: _apiVersion, ...rest }: Document): object {
  return rest;
}

const rollback = (name: string) => ({
  kind: 'DeploymentRollback',
  apiVersion: 'extensions/v1beta1',
  name,
  rollbackTo: {},
});

for (const kind of specifiedKinds) {
  for (const as of media) {
    test(`operation templates: ${kind.kind} in ${as.name}`, async (t) => {
      t.timeout(60_000);
      const namespace = kind.namespaced ? await newNamespace() : '';
      const collection = collectionPath(kind, namespace);
      const name = `${kind.plural}-${as.name}`;
      const path = `${collection}/${name}`;

      const created = await ok(201, 'POST', collection, kind.manifest(name, namespace), as);
      t.like(created, { kind: kind.kind, apiVersion: kind.apiVersion });
      t.is(created.metadata?.name, name);
      t.truthy(created.metadata?.resourceVersion);
      t.truthy(created.metadata?.creationTimestamp);
      t.like(await ok(409, 'POST', collection, kind.manifest(name, namespace), as), {
        kind: 'Status',
        reason: 'AlreadyExists',
      });

      const shown = await ok(200, 'GET', path, undefined, as);
      t.deepEqual(shown, await ok(200, 'GET', path));
      const everywhere = kind.namespaced ? [`${kind.prefix}/${kind.plural}`] : [];
      for (const list of [collection, ...everywhere]) {
        const listed = await ok(200, 'GET', `${list}?fieldSelector=metadata.name%3D${name}`, undefined, as);
        t.like(listed, { kind: `${kind.kind}List`, apiVersion: kind.apiVersion });
        t.truthy(listed.metadata?.resourceVersion);
        t.deepEqual(bare(named(listed, name) as Document), bare(shown));
      }

      const labels = { ...shown.metadata?.labels, replaced: 'yes' };
      const replaced = await ok(200, 'PUT', path, { ...shown, metadata: { ...shown.metadata, labels } }, as);
      t.is(replaced.metadata?.labels?.['replaced'], 'yes');
      t.like(await ok(409, 'PUT', path, shown, as), { kind: 'Status', reason: 'Conflict' });
      await patchAll(t, path, as);

      if (kind.subresources.includes('status')) {
        const status = await ok(200, 'GET', `${path}/status`, undefined, as);
        t.is(status.kind, kind.kind);
        t.is((await ok(200, 'PUT', `${path}/status`, status, as)).kind, kind.kind);
        await patchAll(t, `${path}/status`, as);
      }
      if (kind.subresources.includes('scale')) {
        const scale = await ok(200, 'GET', `${path}/scale`, undefined, as);
        t.like(scale, { kind: 'Scale', apiVersion: 'extensions/v1beta1', spec: { replicas: 2 } });
        t.like(await ok(200, 'PUT', `${path}/scale`, { ...scale, spec: { replicas: 3 } }, as), {
          spec: { replicas: 3 },
        });
        for (const [i, type] of patchTypes.entries()) {
          const replicas = 4 + i;
          const value = i === 0 ? [{ op: 'replace', path: '/spec/replicas', value: replicas }] : { spec: { replicas } };
          const headers = { accept: as.type, 'content-type': type };
          const reply = await http.send('PATCH', `${path}/scale`, { body: JSON.stringify(value), headers });
          t.is(reply.status, 200, type);
          t.like(read(reply, as, 'scale'), { kind: 'Scale', spec: { replicas } });
        }
        t.like(await ok(200, 'GET', path, undefined, as), { spec: { replicas: 6 } });
      }
      if (kind.subresources.includes('rollback')) {
        const reply = await send('POST', `${path}/rollback`, rollback(name), as);
        t.true([200, 201, 202].includes(reply.status), `${reply.status} ${reply.body.toString()}`);
        t.like(read(reply, as, 'rollback'), { kind: 'DeploymentRollback', apiVersion: 'extensions/v1beta1', name });
      }
      if (kind.subresources.includes('finalize')) {
        const now = await ok(200, 'GET', path);
        const kept = await ok(200, 'PUT', `${path}/finalize`, { ...now, spec: { finalizers: ['kubernetes'] } }, as);
        t.like(kept, { kind: 'Namespace', spec: { finalizers: ['kubernetes'] } });
      }

      const options = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background' };
      const deleted = await ok(200, 'DELETE', path, options, as);
      if (deleted.kind === 'Status')
        t.like(deleted, { status: 'Success', details: { name, uid: created.metadata?.uid } });
      else t.is(deleted.metadata?.uid, created.metadata?.uid);
      if (!kind.namespaced) return;
      t.like(await ok(404, 'GET', path, undefined, as), { kind: 'Status', reason: 'NotFound', code: 404 });

      for (const each of ['one', 'two']) await ok(201, 'POST', collection, kind.manifest(each, namespace), as);
      const selected = `${collection}?labelSelector=app%3Done&propagationPolicy=Background`;
      // kube-apiserver answers with the list of what it deleted, where the specification has a Status.
      const namesOf = (list: Document) => [
        list.kind,
        ...(list['items'] as Document[]).map(({ metadata }) => metadata?.name),
      ];
      const listKind = `${kind.kind}List`;
      t.deepEqual(namesOf(await ok(200, 'DELETE', selected, undefined, as)), [listKind, 'one']);
      t.deepEqual(namesOf(await ok(200, 'GET', collection, undefined, as)), [listKind, 'two']);
      t.deepEqual(namesOf(await ok(200, 'DELETE', collection, { ...options, gracePeriodSeconds: 0 }, as)), [
        listKind,
        'two',
      ]);
      t.deepEqual((await ok(200, 'GET', collection, undefined, as))['items'], []);
    });
  }
}

/** Opens a watch and collects the events of one object until it is deleted. */
async function watched(path: string, accept: string, as: WireMedia, name: string): Promise<() => Promise<WireEvent[]>> {
  const response: IncomingMessage = await http.open('GET', path, { headers: { accept, 'accept-encoding': 'gzip' } });
  if (response.statusCode !== 200) throw new Error(`${path}: ${response.statusCode}`);
  const { headers } = response;
  const type = accept === json.type || as !== protobuf ? as.type : `${as.type};stream=watch`;
  if (headers['content-type'] !== type) throw new Error(`${path} for ${accept}: ${headers['content-type']}`);
  if (headers['transfer-encoding'] !== 'chunked') throw new Error(`${path}: not chunked`);
  if (headers['content-encoding'] !== undefined) throw new Error(`${path}: compressed`);
  return async () => {
    const seen: WireEvent[] = [];
    for await (const event of as.events(response)) {
      if (event.object.metadata?.name !== name) continue;
      seen.push(event);
      if (event.type === 'DELETED') break;
    }
    response.destroy();
    return seen;
  };
}

for (const as of media) {
  for (const accept of [as.type, `${as.type};stream=watch`]) {
    test(`watch templates: all kinds with Accept ${accept}`, async (t) => {
      t.timeout(90_000);
      for (const kind of specifiedKinds) {
        const namespace = kind.namespaced ? await newNamespace() : '';
        const collection = collectionPath(kind, namespace);
        const name = `w-${as.name}-${accept.length}`;
        const inScope = collection.slice(kind.prefix.length);
        const from = (await ok(200, 'GET', collection)).metadata?.resourceVersion;
        const query = `resourceVersion=${from}&timeoutSeconds=30`;
        const paths = [
          `${collection}?watch=1&${query}`,
          `${collection}?watch=true&fieldSelector=metadata.name%3D${name}&${query}`,
          `${kind.prefix}/watch${inScope}?${query}`,
          `${kind.prefix}/watch${inScope}/${name}?${query}`,
          ...(kind.namespaced
            ? [`${kind.prefix}/${kind.plural}?watch=1&${query}`, `${kind.prefix}/watch/${kind.plural}?${query}`]
            : []),
        ];
        const streams = await Promise.all(paths.map((path) => watched(path, accept, as, name)));
        const created = await ok(201, 'POST', collection, kind.manifest(name, namespace));
        const changed = await ok(
          200,
          'PATCH',
          `${collection}/${name}`,
          { metadata: { labels: { a: 'b' } } },
          json,
          patch('application/merge-patch+json'),
        );
        await ok(200, 'DELETE', `${collection}/${name}?propagationPolicy=Background`);
        for (const [i, stream] of (await Promise.all(streams.map((collect) => collect()))).entries()) {
          t.deepEqual(stream[0], { type: 'ADDED', object: created }, paths[i]);
          t.deepEqual(stream[1], { type: 'MODIFIED', object: changed }, paths[i]);
          // Namespaces are emptied before they are removed.
          t.is(stream.at(-1)?.type, 'DELETED');
          t.true(stream.slice(2, -1).every(({ type }) => type === 'MODIFIED'));
        }
      }
    });
  }
}

test('scopes: names are unique, namespaces are separate, and objects are deleted with their namespace', async (t) => {
  const [here, there] = [await newNamespace(), await newNamespace()];
  const contents = specifiedKinds.filter(({ namespaced }) => namespaced);
  for (const namespace of [here, there]) {
    for (const kind of contents)
      await ok(201, 'POST', collectionPath(kind, namespace), kind.manifest('same', namespace));
  }
  await ok(200, 'DELETE', `${core}/namespaces/${here}`);
  for (let gone = false; !gone; ) gone = (await send('GET', `${core}/namespaces/${here}`)).status === 404;
  for (const kind of contents) {
    t.deepEqual((await ok(200, 'GET', collectionPath(kind, here)))['items'], [], kind.kind);
    t.is(((await ok(200, 'GET', collectionPath(kind, there)))['items'] as object[]).length, 1, kind.kind);
  }
  const refused = await ok(404, 'POST', `${core}/namespaces/${here}/configmaps`, { metadata: { name: 'late' } });
  t.is(refused['reason'], 'NotFound');
});

test('subresources: exactly those of the table', async (t) => {
  const namespace = await newNamespace();
  for (const kind of specifiedKinds) {
    const path = kind.namespaced ? `${collectionPath(kind, namespace)}/x` : `${core}/namespaces/${namespace}`;
    if (kind.namespaced) await ok(201, 'POST', collectionPath(kind, namespace), kind.manifest('x', namespace));
    for (const name of ['status', 'scale', 'rollback', 'finalize']) {
      const { status } = await send('GET', `${path}/${name}`);
      const readable = name === 'status' || name === 'scale';
      t.is(status, kind.subresources.includes(name) ? (readable ? 200 : 405) : 404, `${kind.kind} ${name}`);
    }
  }
});

/** Subresources that are forwarded, and have no representation of their own. */
const passedOn = /\/(attach|exec|log|portforward|proxy)$/;

test('discovery: resources of both group versions, in every representation, with and without a trailing slash', async (t) => {
  for (const [prefix, groupVersion] of [
    [core, 'v1'],
    [extensions, 'extensions/v1beta1'],
  ] as const) {
    for (const path of [prefix, `${prefix}/`]) {
      const list = await ok(200, 'GET', path);
      t.like(list, { kind: 'APIResourceList', groupVersion });
      t.deepEqual(await ok(200, 'GET', path, undefined, yaml), list);
      const reply = await http.send('GET', path, { headers: { accept: protobuf.type } });
      t.is(reply.headers['content-type'], protobuf.type);
      t.is(reply.body.subarray(0, 4).toString('hex'), '6b387300');
      const resources = new Map((list['resources'] as { name: string }[]).map((each) => [each.name, each] as const));
      for (const kind of specifiedKinds.filter((each) => each.prefix === prefix)) {
        const entry = resources.get(kind.plural) as unknown as { kind: string; namespaced: boolean; verbs: string[] };
        t.like(entry, { kind: kind.kind, namespaced: kind.namespaced });
        for (const verb of ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'])
          t.true(entry.verbs.includes(verb));
        t.is(entry.verbs.includes('deletecollection'), kind.namespaced);
        for (const name of [kind.plural, ...kind.subresources.map((each) => `${kind.plural}/${each}`)]) {
          t.true(resources.has(name), name);
          t.true(reply.body.includes(name), name);
        }
        const others = [...resources.keys()].filter(
          (name) => name.startsWith(`${kind.plural}/`) && !passedOn.test(name),
        );
        t.is(others.length, kind.subresources.length, kind.kind);
      }
    }
  }
});

test('pretty: accepted everywhere, indents JSON', async (t) => {
  const namespace = await newNamespace();
  for (const kind of specifiedKinds) {
    const collection = collectionPath(kind, namespace);
    const path = `${collection}/pretty`;
    const replies: [string, string, object?, PlainRequest?][] = [
      ['POST', collection, kind.manifest('pretty', namespace)],
      ['GET', path],
      ['GET', collection],
      ['PATCH', path, { metadata: { labels: { x: 'y' } } }, patch('application/merge-patch+json')],
      ...kind.subresources
        .filter((name) => name === 'status' || name === 'scale')
        .map((name) => ['GET', `${path}/${name}`] as [string, string]),
      ['DELETE', path],
      ...(kind.namespaced ? [['DELETE', collection] as [string, string]] : []),
    ];
    for (const [method, at, document, extra] of replies) {
      const reply = await send(method, `${at}?pretty=true`, document, json, extra);
      t.true(reply.status < 300, `${method} ${at} ${reply.status}`);
      t.is(reply.body.toString(), `${JSON.stringify(JSON.parse(reply.body.toString()), null, 2)}\n`, `${method} ${at}`);
    }
  }
  t.is(
    (await send('GET', `${core}/watch/namespaces/${namespace}/configmaps?pretty=true&timeoutSeconds=1`)).status,
    200,
  );
});

test('query parameters of lists, watches and deletions of collections', async (t) => {
  const namespace = await newNamespace();
  const maps = `${core}/namespaces/${namespace}/configmaps`;
  for (const name of ['a', 'b', 'c']) {
    const labels = { name, group: name === 'c' ? 'y' : 'x' };
    await ok(201, 'POST', maps, { metadata: { name, labels } });
  }
  const names = async (query: string, as = json) =>
    ((await ok(200, 'GET', `${maps}?${query}`, undefined, as))['items'] as Document[])
      .map(({ metadata }) => metadata?.name)
      .join('');
  for (const as of media) {
    t.is(await names('labelSelector=group%3Dx', as), 'ab');
    t.is(await names('labelSelector=group+in+(x,y),name!%3Da', as), 'bc');
    t.is(await names('fieldSelector=metadata.name%3Db', as), 'b');
    t.is(await names('fieldSelector=metadata.name!%3Db&labelSelector=group%3Dx', as), 'a');
    t.is(await names('includeUninitialized=true', as), 'abc');
    t.is(
      await names('includeUninitialized=false&timeoutSeconds=5&resourceVersion=0&limit=0&continue=&watch=false', as),
      'abc',
    );
  }
  for (const bad of [
    'labelSelector=%3D%3D',
    'fieldSelector=spec.none%3D1',
    'limit=x',
    'timeoutSeconds=x',
    'resourceVersion=x',
  ]) {
    t.is((await send('GET', `${maps}?${bad}`)).status, 400, bad);
  }
  const events = async (query: string) => {
    const response = await http.open('GET', `${maps}?watch=1&timeoutSeconds=1&${query}`);
    const seen: string[] = [];
    for await (const { type, object } of json.events(response)) seen.push(`${type} ${object.metadata?.name}`);
    return seen;
  };
  t.deepEqual(await events('labelSelector=group%3Dy'), ['ADDED c']);
  t.deepEqual(await events('fieldSelector=metadata.name%3Da&includeUninitialized=true'), ['ADDED a']);
  // Not supported with a watch: they change nothing.
  t.is((await events('limit=1')).length, 3);
  await ok(200, 'DELETE', `${maps}?fieldSelector=metadata.name%3Da`);
  t.is(await names(''), 'bc');
  await ok(
    200,
    'DELETE',
    `${maps}?labelSelector=group+notin+(x)&includeUninitialized=true&timeoutSeconds=5&resourceVersion=0`,
  );
  t.is(await names(''), 'b');
});

test('resourceVersion: unset, 0 and a version, of lists and watches', async (t) => {
  const namespace = await newNamespace();
  const maps = `${core}/namespaces/${namespace}/configmaps`;
  const first = await ok(201, 'POST', maps, { metadata: { name: 'a' } });
  const second = await ok(201, 'POST', maps, { metadata: { name: 'b' } });
  const count = async (query: string) => ((await ok(200, 'GET', `${maps}${query}`))['items'] as object[]).length;
  t.is(await count(''), 2);
  t.is(await count('?resourceVersion=0'), 2);
  t.is(await count(`?resourceVersion=${second.metadata?.resourceVersion}`), 2);
  const fresh = await ok(200, 'GET', `${maps}?resourceVersion=${first.metadata?.resourceVersion}`);
  t.true(Number(fresh.metadata?.resourceVersion) >= Number(first.metadata?.resourceVersion));
  const watch = async (query: string) => {
    const response = await http.open('GET', `${maps}?watch=1&timeoutSeconds=1${query}`);
    const seen: string[] = [];
    for await (const { object } of json.events(response)) seen.push(object.metadata?.name ?? '');
    return seen.join('');
  };
  t.is(await watch(`&resourceVersion=${first.metadata?.resourceVersion}`), 'b');
  t.is(await watch(''), 'ab');
  t.is(await watch('&resourceVersion=0'), 'ab');
  t.is(await watch(`&resourceVersion=${second.metadata?.resourceVersion}`), '');
});

test('reads with export and exact', async (t) => {
  const namespace = await newNamespace();
  for (const kind of specifiedKinds) {
    const collection = collectionPath(kind, namespace);
    await ok(201, 'POST', collection, kind.manifest('exported', namespace));
    for (const as of media) {
      const plain = await ok(200, 'GET', `${collection}/exported?export=true`, undefined, as);
      t.is(plain.metadata?.name, 'exported');
      for (const field of ['uid', 'resourceVersion', 'creationTimestamp', 'namespace'] as const) {
        t.falsy(plain.metadata?.[field], `${kind.kind} ${field}`);
      }
      const exact = await ok(200, 'GET', `${collection}/exported?export=true&exact=true`, undefined, as);
      t.is(exact.metadata?.namespace, kind.namespaced ? namespace : undefined);
      t.falsy(exact.metadata?.uid);
    }
    await ok(200, 'DELETE', `${collection}/exported`);
  }
});

test('deletes: every option, in the query and in bodies of every format, and excluded combinations', async (t) => {
  const namespace = await newNamespace();
  const sets = `${extensions}/namespaces/${namespace}/replicasets`;
  const kind = specifiedKinds.find(({ plural }) => plural === 'replicasets') as SpecifiedKind;
  const finalizersAfter = async (query: string, body?: object, as = json) => {
    const { metadata } = await ok(201, 'POST', sets, kind.manifest('r', namespace));
    const answer = await ok(200, 'DELETE', `${sets}/r${query}`, body, as);
    const left = answer.kind === 'Status' ? [] : (answer.metadata?.finalizers ?? []);
    t.is(answer.kind === 'Status' ? (answer['details'] as { uid: string }).uid : answer.metadata?.uid, metadata?.uid);
    for (let gone = false; !gone; ) gone = (await send('GET', `${sets}/r`)).status === 404;
    return left.join();
  };
  // These kinds orphan their dependents by default.
  t.is(await finalizersAfter(''), 'orphan');
  t.is(await finalizersAfter('?propagationPolicy=Background'), '');
  t.is(await finalizersAfter('?propagationPolicy=Orphan'), 'orphan');
  t.is(await finalizersAfter('?propagationPolicy=Foreground'), 'foregroundDeletion');
  t.is(await finalizersAfter('?orphanDependents=true'), 'orphan');
  t.is(await finalizersAfter('?orphanDependents=false'), '');
  t.is(await finalizersAfter('?gracePeriodSeconds=0&propagationPolicy=Background'), '');
  for (const as of media) {
    const options = { kind: 'DeleteOptions', apiVersion: 'v1' };
    t.is(await finalizersAfter('', { ...options, propagationPolicy: 'Orphan' }, as), 'orphan', as.name);
    t.is(await finalizersAfter('', { ...options, propagationPolicy: 'Background', gracePeriodSeconds: 30 }, as), '');
    t.is(await finalizersAfter('', { ...options, orphanDependents: false }, as), '');
    await ok(201, 'POST', sets, kind.manifest('r', namespace));
    const both = { ...options, orphanDependents: true, propagationPolicy: 'Orphan' };
    t.like(await ok(422, 'DELETE', `${sets}/r`, both, as), { kind: 'Status', reason: 'Invalid' });
    const other = { ...options, preconditions: { uid: '00000000-0000-0000-0000-000000000000' } };
    t.like(await ok(409, 'DELETE', `${sets}/r`, other, as), { kind: 'Status', reason: 'Conflict' });
    await ok(200, 'DELETE', `${sets}/r`, { ...options, propagationPolicy: 'Background' }, as);
  }
  t.is((await send('DELETE', `${sets}/r?orphanDependents=true&propagationPolicy=Orphan`)).status, 422);
  t.is((await send('DELETE', `${sets}/r?propagationPolicy=Sideways`)).status, 422);
  t.is((await send('DELETE', `${sets}/r?gracePeriodSeconds=soon`)).status, 400);
  t.is((await send('DELETE', `${sets}/r`)).status, 404);
});

test('content negotiation: every body format with every response format, on POST and PUT', async (t) => {
  const namespace = await newNamespace();
  for (const kind of specifiedKinds) {
    const collection = collectionPath(kind, namespace);
    for (const from of media) {
      for (const to of media) {
        const name = `${from.name}-${to.name}`;
        const headers = { 'content-type': from.type, accept: to.type };
        const body = from.encode(kind.manifest(name, namespace));
        const posted = await http.send('POST', collection, { body, headers });
        t.is(posted.status, 201, `${kind.kind} ${name}: ${posted.body.toString()}`);
        const created = read(posted, to, name);
        const put = await http.send('PUT', `${collection}/${name}`, { body: from.encode(created), headers });
        t.is(put.status, 200, `${kind.kind} ${name}: ${put.body.toString()}`);
        t.deepEqual(read(put, to, name), await ok(200, 'GET', `${collection}/${name}`));
        await send('DELETE', `${collection}/${name}?propagationPolicy=Background`);
      }
    }
  }
});

test('content negotiation: default, fallback, Table, 406 and 415', async (t) => {
  const namespace = await newNamespace();
  const table = 'application/json;as=Table;g=meta.k8s.io;v=v1beta1';
  for (const kind of specifiedKinds) {
    const collection = collectionPath(kind, namespace);
    await ok(201, 'POST', collection, kind.manifest('n', namespace));
    for (const path of [collection, `${collection}/n`]) {
      const get = (accept?: string) => http.send('GET', path, accept === undefined ? {} : { headers: { accept } });
      t.is((await get()).headers['content-type'], json.type);
      t.is((await get('*/*')).headers['content-type'], json.type);
      t.is((await get(`${protobuf.type}, application/json`)).headers['content-type'], protobuf.type);
      t.is((await get(`application/vnd.unknown.protobuf, application/json`)).headers['content-type'], json.type);
      for (const accept of [table, `${table}, application/json`]) {
        const shown = json.decode((await get(accept)).body) as Document & {
          columnDefinitions: { name: string; type: string }[];
        };
        t.like(shown, { kind: 'Table', apiVersion: 'meta.k8s.io/v1beta1' });
        t.is(shown.columnDefinitions[0]?.name, kind.kind === 'Event' ? 'Last Seen' : 'Name');
        t.true(shown.columnDefinitions.every(({ name, type }) => name !== '' && type !== ''));
      }
      for (const accept of [
        'application/xml',
        'text/html',
        'application/vnd.unknown.protobuf',
        `${protobuf.type};as=Table;g=meta.k8s.io;v=v1`,
      ]) {
        const reply = await get(accept);
        t.is(reply.status, 406, `${path} ${accept}`);
      }
    }
    for (const type of ['application/xml', 'text/plain', 'application/vnd.unknown.protobuf']) {
      const headers = { 'content-type': type };
      const body = JSON.stringify(kind.manifest('m', namespace));
      t.is((await http.send('POST', collection, { body, headers })).status, 415);
      t.is((await http.send('PUT', `${collection}/n`, { body, headers })).status, 415);
      t.is((await http.send('PATCH', `${collection}/n`, { body, headers })).status, 415);
    }
    t.is(
      (await http.send('PATCH', `${collection}/n`, { body: '{}', headers: { 'content-type': json.type } })).status,
      415,
    );
    const broken = Buffer.concat([
      Buffer.from('6b387301', 'hex'),
      protobuf.encode(kind.manifest('m', namespace)).subarray(4),
    ]);
    const headers = { 'content-type': protobuf.type, accept: protobuf.type };
    const refused = await http.send('POST', collection, { body: broken, headers });
    t.is(refused.status, 400);
    t.like(read(refused, protobuf, 'a wrong prefix'), { kind: 'Status', reason: 'BadRequest' });
  }
  const watch = await http.send('GET', `${core}/watch/configmaps`, { headers: { accept: 'application/xml' } });
  t.is(watch.status, 406);
});

test('chunked lists: one snapshot in pages regardless of concurrent writes, in every representation', async (t) => {
  for (const as of media) {
    const namespace = await newNamespace();
    const maps = `${core}/namespaces/${namespace}/configmaps`;
    for (let i = 0; i < 10; i += 1)
      await ok(201, 'POST', maps, { metadata: { name: `m${i}`, labels: { odd: `${i % 2}` } }, data: { v: '1' } });
    const seen: Document[] = [];
    const versions = new Set<string | undefined>();
    let token = '';
    let pages = 0;
    do {
      const page = await ok(
        200,
        'GET',
        `${maps}?limit=3${token === '' ? '' : `&continue=${encodeURIComponent(token)}`}`,
        undefined,
        as,
      );
      const items = page['items'] as Document[];
      t.true(items.length <= 3);
      seen.push(...items);
      versions.add(page.metadata?.resourceVersion);
      token = (page.metadata as { continue?: string }).continue ?? '';
      pages += 1;
      if (pages > 1) continue;
      await ok(201, 'POST', maps, { metadata: { name: 'm95' } });
      await ok(200, 'PUT', `${maps}/m8`, { metadata: { name: 'm8' }, data: { v: '2' } });
      await ok(200, 'DELETE', `${maps}/m9`);
    } while (token !== '');
    t.is(pages, 4);
    t.deepEqual(
      seen.map(({ metadata }) => metadata?.name),
      Array.from({ length: 10 }, (_, i) => `m${i}`),
    );
    t.true(seen.every((each) => (each['data'] as { v: string }).v === '1'));
    t.is(versions.size, 1);
    // A watch can begin at the consistent state: it receives the changes since then.
    const response = await http.open('GET', `${maps}?watch=1&timeoutSeconds=1&resourceVersion=${[...versions][0]}`);
    const types: string[] = [];
    for await (const { type } of json.events(response)) types.push(type);
    t.deepEqual(types, ['ADDED', 'MODIFIED', 'DELETED']);

    const first = await ok(200, 'GET', `${maps}?limit=2&labelSelector=odd%3D1`, undefined, as);
    const next = encodeURIComponent((first.metadata as { continue?: string }).continue ?? '');
    const other = await send('GET', `${maps}?limit=2&labelSelector=odd%3D0&continue=${next}`, undefined, as);
    t.true(other.status === 400 || other.status === 410, 'other parameters than before');
    t.like(await ok(410, 'GET', `${maps}?limit=2&continue=nonsense`, undefined, as), {
      kind: 'Status',
      reason: 'Expired',
      code: 410,
    });
  }
});

test('large lists are compressed on request, in every representation', async (t) => {
  const namespace = await newNamespace();
  const maps = `${core}/namespaces/${namespace}/configmaps`;
  for (let i = 0; i < 20; i += 1)
    await ok(201, 'POST', maps, { metadata: { name: `m${i}` }, data: { text: 'y'.repeat(8000) } });
  for (const as of media) {
    const headers = { accept: as.type };
    const plain = await http.send('GET', maps, { headers });
    const zipped = await http.send('GET', maps, { headers: { ...headers, 'accept-encoding': 'gzip' } });
    t.is(zipped.headers['content-encoding'], 'gzip');
    t.is(zipped.headers.vary, 'Accept-Encoding');
    t.deepEqual(as.decode(gunzipSync(zipped.body))['items'], as.decode(plain.body)['items']);
  }
});

test('a watch resumes after a disconnect from the last version that it received', async (t) => {
  for (const as of media) {
    const namespace = await newNamespace();
    const maps = `${core}/namespaces/${namespace}/configmaps`;
    let from = (await ok(200, 'GET', maps)).metadata?.resourceVersion;
    for (let i = 0; i < 4; i += 1) await ok(201, 'POST', maps, { metadata: { name: `m${i}` } });
    const seen: (string | undefined)[] = [];
    while (seen.length < 4) {
      const response = await http.open('GET', `${maps}?watch=1&resourceVersion=${from}`, {
        headers: { accept: as.type },
      });
      for await (const { object } of as.events(response)) {
        seen.push(object.metadata?.name);
        from = object.metadata?.resourceVersion;
        // One event of each connection, also when it has sent more.
        break;
      }
      response.destroy();
    }
    t.deepEqual(seen, ['m0', 'm1', 'm2', 'm3']);
  }
});

test('a permission check is a POST to a virtual resource', async (t) => {
  const review = (spec: object) => ({
    kind: 'SubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    metadata: {},
    spec,
  });
  const spec = {
    user: 'somebody',
    groups: ['system:masters'],
    resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'default' },
  };
  for (const as of media) {
    const answer = await ok(201, 'POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', review(spec), as);
    t.like(answer, { kind: 'SubjectAccessReview', status: { allowed: true } });
  }
  t.is((await send('GET', '/apis/authorization.k8s.io/v1/subjectaccessreviews')).status, 405);
});
