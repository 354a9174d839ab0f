import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { gunzipSync } from 'node:zlib';
import anyTest, { type TestFn } from 'ava';
import {
  type KeelsonProcess,
  removeDirectory,
  startKeelson,
  storageArguments,
  temporaryDirectory,
} from '../../src/keelson-process.ts';
import { manifestsOf } from '../../src/manifests.ts';
import { kindOfSchema, misfits, type SwaggerDocument, type SwaggerOperation } from '../../src/swagger-check.ts';

/*
 * The npm package `kubernetes-client` generates its methods from a published OpenAPI document of 1.10. Every operation
 * of that document on the kinds of the specification is called through it, and the responses are compared with the
 * document.
 */

const require = createRequire(import.meta.url);

interface Answer {
  readonly statusCode: number;
  readonly body: Readonly<Record<string, unknown>>;
}
interface CallOptions {
  readonly body?: unknown;
  readonly qs?: Readonly<Record<string, unknown>>;
}
type Call = (options?: CallOptions) => Promise<Answer>;
interface ObjectStream {
  on(event: 'data', listener: (object: Record<string, unknown>) => void): void;
  on(event: 'error' | 'end', listener: (error?: Error) => void): void;
  destroy(): void;
}
/** A place in the tree of paths: members are further segments, a call fills in a parameter. */
type Place = ((value: string) => Place) & {
  readonly [segment: string]: Place;
} & { readonly getObjectStream: (options: CallOptions) => Promise<ObjectStream> };

const { Client } = require('kubernetes-client') as {
  Client: new (options: object) => Place & { loadSpec(): Promise<Place> };
};
const Request = require('kubernetes-client/backends/request') as new (options: object) => object;
const { KubeConfig } = createRequire(require.resolve('kubernetes-client'))('@kubernetes/client-node') as {
  KubeConfig: new () => { loadFromFile(path: string): void };
};

const document = JSON.parse(
  gunzipSync(readFileSync(require.resolve('kubernetes-client/lib/specs/swagger-1.10.json.gz'))).toString(),
) as SwaggerDocument;

const resources: Readonly<Record<string, readonly string[]>> = {
  '/api/v1': ['configmaps', 'events', 'namespaces', 'secrets', 'services'],
  '/apis/extensions/v1beta1': ['daemonsets', 'deployments', 'ingresses', 'replicasets'],
};
const methods = ['get', 'post', 'put', 'patch', 'delete'];

interface Operation extends SwaggerOperation {
  readonly path: string;
  readonly method: string;
  readonly resource: string;
}

/** Every operation on the nine kinds, in the order of the document. */
function operationsOf(spec: SwaggerDocument): Operation[] {
  return Object.entries(spec.paths).flatMap(([path, item]) => {
    const [root = ''] = Object.keys(resources).filter((prefix) => path.startsWith(`${prefix}/`));
    const rest = path
      .slice(root.length)
      .replace(/^\/watch/, '')
      .replace('/namespaces/{namespace}', '');
    const resource = rest.split('/')[1] ?? '';
    if (root === '' || !resources[root]?.includes(resource)) return [];
    return methods.flatMap((method) => (item[method] ? [{ ...item[method], path, method, resource }] : []));
  });
}

/** Connects to the network behind a service, not to the API. */
const operations = operationsOf(document).filter((operation) => operation['x-kubernetes-action'] !== 'connect');
const connects = operationsOf(document).length - operations.length;

const test = anyTest as TestFn<{ readonly client: Place; readonly server: KeelsonProcess }>;
let started: { client: Place; server: KeelsonProcess; folder: string } | undefined;

function requestBackend(server: KeelsonProcess): object {
  const kubeconfig = new KubeConfig();
  kubeconfig.loadFromFile(server.kubeconfig);
  return new Request({ kubeconfig });
}

test.before(async () => {
  const folder = await temporaryDirectory();
  const server = await startKeelson(`${folder}/data`, storageArguments());
  started = { client: new Client({ backend: requestBackend(server), version: '1.10' }), server, folder };
});
test.beforeEach((t) => {
  if (started !== undefined) t.context = started;
});
test.after.always(async () => {
  await started?.server.stop();
  if (started !== undefined) await removeDirectory(started.folder);
});

function placeOf(client: Place, path: string, values: Readonly<Record<string, string>>): Place {
  let place = client;
  for (const segment of path.split('/').filter(Boolean)) {
    place = segment.startsWith('{') ? place(values[segment.slice(1, -1)] ?? '') : (place[segment] as Place);
  }
  return place;
}

const call = (place: Place, method: string, options?: CallOptions) =>
  (place[method] as unknown as Call).call(place, options);

function manifestOf(resource: string, name: string, namespace: string): Readonly<Record<string, unknown>> {
  const manifests = manifestsOf(name, namespace);
  if (resource === 'namespaces') return { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
  const found = manifests[resource] ?? manifests[`${resource}.extensions`];
  if (found === undefined) throw new Error(`no manifest for ${resource}`);
  return found;
}

/** The body that an operation requires; changes are based on the object of the server. */
async function bodyFor(
  { method, path, resource }: Operation,
  place: Place,
  values: Readonly<Record<string, string>>,
): Promise<unknown> {
  const { namespace = '', name = '' } = values;
  if (path.endsWith('/rollback')) {
    return { apiVersion: 'extensions/v1beta1', kind: 'DeploymentRollback', name, rollbackTo: { revision: 0 } };
  }
  if (method === 'post') return manifestOf(resource, name, namespace);
  if (method === 'patch')
    return path.endsWith('/scale') ? { spec: { replicas: 3 } } : { metadata: { annotations: { patched: 'yes' } } };
  if (method === 'put') {
    const source = path.endsWith('/finalize') ? path.replace('/finalize', '') : path;
    const root = started?.client;
    const from = source === path || root === undefined ? place : placeOf(root, source, values);
    return (await call(from, 'get')).body;
  }
  return undefined;
}

async function firstEvent(place: Place): Promise<Record<string, unknown>> {
  const stream = await place.getObjectStream({ qs: { timeoutSeconds: 20 } });
  return new Promise((resolve, reject) => {
    stream.on('data', (event) => {
      resolve(event);
      stream.destroy();
    });
    stream.on('error', (error) => reject(error ?? new Error('the stream failed')));
    stream.on('end', () => reject(new Error('the stream ended without an event')));
  });
}

/** The errors of the response to one operation; empty when it is as documented. */
async function tryOperation(client: Place, operation: Operation, index: number): Promise<string[]> {
  const { path, method, resource, responses } = operation;
  const namespace = resource === 'namespaces' ? '' : `doc-${index}`;
  const values = { namespace, name: resource === 'namespaces' ? `doc-${index}` : 'thing' };
  const root = path.startsWith('/api/v1') ? '/api/v1' : '/apis/extensions/v1beta1';
  if (namespace !== '') {
    await call(placeOf(client, '/api/v1/namespaces', {}), 'post', { body: manifestOf('namespaces', namespace, '') });
  }
  const isCreate = method === 'post' && !path.includes('{name}');
  if (!isCreate) {
    const collection = resource === 'namespaces' ? `${root}/namespaces` : `${root}/namespaces/{namespace}/${resource}`;
    await call(placeOf(client, collection, values), 'post', { body: manifestOf(resource, values.name, namespace) });
  }
  const place = placeOf(client, path, values);
  if (operation['x-kubernetes-action']?.startsWith('watch')) {
    const event = await firstEvent(place);
    const schema = responses['200']?.schema ?? {};
    const kind = (event['object'] as Record<string, unknown> | undefined)?.['kind'];
    const group = root === '/api/v1' ? 'core.v1' : 'extensions.v1beta1';
    const shape = { $ref: `#/definitions/io.k8s.api.${group}.${String(kind)}` };
    const expected = manifestOf(resource, 'x', 'x')['kind'];
    return [
      ...misfits(document, schema, event),
      ...misfits(document, shape, event['object']),
      ...(event['type'] === 'ADDED' ? [] : [`type is ${String(event['type'])}`]),
      ...(kind === expected ? [] : [`object is a ${String(kind)}`]),
    ];
  }
  const body = await bodyFor(operation, place, values);
  const answer = await call(place, method, body === undefined ? {} : { body });
  const documented = responses[String(answer.statusCode)];
  if (documented === undefined || answer.statusCode >= 300) return [`answers ${answer.statusCode}`];
  const wanted = kindOfSchema(document, documented.schema);
  // A delete may be answered with the object, and that of a collection is answered with a list, as kube-apiserver does
  // in spite of its document; every client takes them for a Status with little in it.
  const { kind } = manifestOf(resource, 'x', 'x');
  const own = method === 'delete' && [kind, `${kind}List`].includes(answer.body['kind']);
  if (own) return [];
  return [
    ...misfits(document, documented.schema ?? {}, answer.body),
    ...(wanted === '' || answer.body['kind'] === wanted
      ? []
      : [`kind is ${String(answer.body['kind'])}, not ${wanted}`]),
  ];
}

test('every operation of the 1.10 document on the nine kinds responds as documented', async (t) => {
  t.timeout(300_000);
  t.is(document.info.version, 'v1.10.5');
  t.true(operations.length > 110, `only ${operations.length} operations`);
  const failures: string[] = [];
  for (const [index, operation] of operations.entries()) {
    const wrong = await tryOperation(t.context.client, operation, index).catch((error: unknown) => [String(error)]);
    if (wrong.length > 0) failures.push(`${operation.method} ${operation.path}: ${wrong.slice(0, 5).join('; ')}`);
  }
  const passed = operations.length - failures.length;
  t.log(
    `operations tried ${operations.length}, passed ${passed}, failed ${failures.length} (left out: ${connects} that connect to the network behind a service)`,
  );
  t.deepEqual(failures, []);
});

test('the client also works with the document that the server itself serves', async (t) => {
  const client = await new Client({ backend: requestBackend(t.context.server) }).loadSpec();
  const created = await call(
    placeOf(client, '/api/v1/namespaces/{namespace}/configmaps', { namespace: 'default' }),
    'post',
    {
      body: manifestOf('configmaps', 'own-document', 'default'),
    },
  );
  t.is(created.statusCode, 201);
  const where = { namespace: 'default', name: 'own-document' };
  const read = await call(placeOf(client, '/api/v1/namespaces/{namespace}/configmaps/{name}', where), 'get');
  t.is((read.body['metadata'] as { name: string }).name, 'own-document');
  const apps = await call(placeOf(client, '/apis/apps/v1/deployments', {}), 'get');
  t.is(apps.body['kind'], 'DeploymentList');
});
