import test from 'ava';
import protobuf from 'protobufjs/minimal.js';
import { defineKind } from '../../src/kind/define-kind.ts';
import type { KindDefinition } from '../../src/kind/kind-definition.ts';
import { optional, required, s } from '../../src/kind/schema.ts';
import { OpenApiDocuments } from '../../src/openapi/open-api-documents.ts';
import { openApiV2Document } from '../../src/openapi/swagger-document.ts';
import { encodeSwagger } from '../../src/openapi/swagger-protobuf.ts';
import type { SwaggerOperation } from '../../src/openapi/swagger-types.ts';
import { configMap, pod, sampleKinds } from '../discovery/sample-kinds.ts';

const port = s.message('k8s.io.api.demo.v1.Port', 'A port.', {
  name: required(1, s.string({ pattern: '^[a-z]+$', maxLength: 15 }), 'Name.'),
  target: optional(2, s.intOrString(), 'Where to.', { default: 80 }),
  size: optional(3, s.quantity(), 'How much.'),
  scheme: optional(4, s.enum('HTTP', 'TCP'), 'How.', { default: 'HTTP' }),
  weight: optional(5, s.int32({ minimum: 0, maximum: 100 }), 'Share.'),
});
const demo = defineKind({
  group: 'demo.example.com',
  version: 'v1',
  kind: 'Demo',
  schema: s.message('k8s.io.api.demo.v1.Demo', 'A demo.', {
    ports: optional(2, s.listByKey(port, 'name'), 'Ports.'),
    free: optional(3, s.raw(), 'Anything.'),
    labels: optional(4, s.map(s.string()), 'Words.'),
    main: optional(5, port, 'The main port.'),
  }),
});
const document = openApiV2Document([...sampleKinds, demo]);

/** A message of the wire by field numbers; what is in it is read again where it is a message. */
function fieldsOf(bytes: Uint8Array): Map<number, (Uint8Array | number)[]> {
  const reader = protobuf.Reader.create(bytes);
  const fields = new Map<number, (Uint8Array | number)[]>();
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    const value = (tag & 7) === 2 ? reader.bytes() : (tag & 7) === 1 ? reader.double() : Number(reader.int64());
    fields.set(tag >>> 3, [...(fields.get(tag >>> 3) ?? []), value]);
  }
  return fields;
}

function all(bytes: Uint8Array, ...path: number[]): (Uint8Array | number)[] {
  let found: (Uint8Array | number)[] = [bytes];
  for (const field of path) found = found.flatMap((value) => fieldsOf(value as Uint8Array).get(field) ?? []);
  return found;
}

function texts(bytes: Uint8Array, ...path: number[]): string[] {
  return all(bytes, ...path).map((value) => Buffer.from(value as Uint8Array).toString());
}

/** Value of one entry of a map, which is a list of names and values. */
function entry(bytes: Uint8Array, name: string, ...path: number[]): Uint8Array {
  const found = all(bytes, ...path).find((candidate) => texts(candidate as Uint8Array, 1)[0] === name);
  return all(found as Uint8Array, 2)[0] as Uint8Array;
}

test('the document contains every operation of every group version in Swagger 2.0', (t) => {
  t.is(document.swagger, '2.0');
  const item = document.paths['/api/v1/namespaces/{namespace}/pods/{name}'];
  t.deepEqual(
    item?.parameters?.map(({ name, in: place }) => `${place} ${name}`),
    ['path name', 'path namespace', 'query pretty'],
  );
  const patch = item?.patch as SwaggerOperation;
  t.deepEqual(patch.parameters?.[0], {
    name: 'body',
    in: 'body',
    required: true,
    schema: { $ref: '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Patch' },
  });
  t.true(patch.parameters?.some(({ name }) => name === 'fieldValidation'));
  t.true(patch.consumes.includes('application/strategic-merge-patch+json'));
  t.deepEqual(patch['x-kubernetes-group-version-kind'], { group: '', version: 'v1', kind: 'Pod' });
  t.deepEqual(patch.produces, ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf']);
  t.deepEqual(document.paths['/api/v1/watch/pods']?.get?.produces.slice(3), [
    'application/json;stream=watch',
    'application/vnd.kubernetes.protobuf;stream=watch',
  ]);
  t.is(document.paths['/apis/apps/v1/']?.get?.operationId, 'getAppsV1APIResources');
  t.is(document.paths['/apis/demo.example.com/v1/namespaces/{namespace}/demos']?.post?.operationId !== undefined, true);
});

test('every reference has a definition, and no keyword of OpenAPI v3 remains', (t) => {
  const text = JSON.stringify(document);
  t.false(text.includes('#/components/'));
  t.false(text.includes('"oneOf"'));
  t.false(text.includes('"requestBody"'));
  const names = [...text.matchAll(/"#\/definitions\/([^"]+)"/g)].map(([, name]) => name as string);
  t.true(names.length > 50);
  for (const name of names) t.true(name in document.definitions, name);
});

test('schemas keep descriptions beside references, merge keys, bounds and defaults', (t) => {
  const { ports, main, free, labels } = document.definitions['io.k8s.api.demo.v1.Demo']?.properties ?? {};
  t.like(ports, {
    type: 'array',
    items: { $ref: '#/definitions/io.k8s.api.demo.v1.Port' },
    'x-kubernetes-patch-merge-key': 'name',
    'x-kubernetes-patch-strategy': 'merge',
  });
  t.deepEqual(main, { $ref: '#/definitions/io.k8s.api.demo.v1.Port', description: 'The main port.' });
  t.like(free, { type: 'object', 'x-kubernetes-preserve-unknown-fields': true });
  t.deepEqual(labels, { type: 'object', additionalProperties: { type: 'string' }, description: 'Words.' });
  t.deepEqual(document.definitions['io.k8s.api.demo.v1.Port']?.properties?.['target'], {
    $ref: '#/definitions/io.k8s.apimachinery.pkg.util.intstr.IntOrString',
    description: 'Where to.',
  });
  t.like(document.definitions['io.k8s.apimachinery.pkg.util.intstr.IntOrString'], {
    type: 'string',
    format: 'int-or-string',
  });
  t.like(document.definitions['io.k8s.apimachinery.pkg.api.resource.Quantity'], { type: 'string' });
  t.deepEqual(document.definitions['io.k8s.api.demo.v1.Demo']?.['x-kubernetes-group-version-kind'], [
    { group: 'demo.example.com', version: 'v1', kind: 'Demo' },
  ]);
});

test('the protobuf form carries definitions with types, references, required fields and extensions', (t) => {
  const bytes = encodeSwagger(document);
  t.deepEqual(texts(bytes, 1), ['2.0']);
  t.deepEqual(texts(bytes, 9, 1, 1).sort(), Object.keys(document.definitions).sort());
  const demoSchema = entry(bytes, 'io.k8s.api.demo.v1.Demo', 9, 1);
  t.deepEqual(texts(demoSchema, 22, 1), ['object']);
  const extension = texts(entry(demoSchema, 'x-kubernetes-group-version-kind', 31), 2)[0] ?? '';
  t.deepEqual(JSON.parse(extension), [{ group: 'demo.example.com', version: 'v1', kind: 'Demo' }]);
  const ports = entry(demoSchema, 'ports', 25, 1);
  t.deepEqual(texts(ports, 22, 1), ['array']);
  t.deepEqual(texts(ports, 23, 1, 1), ['#/definitions/io.k8s.api.demo.v1.Port']);
  t.is(texts(entry(ports, 'x-kubernetes-patch-merge-key', 31), 2)[0], '"name"\n');
  t.deepEqual(texts(entry(demoSchema, 'labels', 25, 1), 21, 1, 22, 1), ['string']);
  const portSchema = entry(bytes, 'io.k8s.api.demo.v1.Port', 9, 1);
  t.deepEqual(texts(portSchema, 19), ['name']);
  t.deepEqual(texts(entry(portSchema, 'name', 25, 1), 13), ['^[a-z]+$']);
  t.deepEqual(all(entry(portSchema, 'name', 25, 1), 11), [15]);
  t.deepEqual(all(entry(portSchema, 'weight', 25, 1), 7), [100]);
  t.deepEqual(all(entry(portSchema, 'weight', 25, 1), 9), [0]);
  t.deepEqual(texts(entry(portSchema, 'scheme', 25, 1), 20, 2), ['"HTTP"\n', '"TCP"\n']);
  t.deepEqual(texts(entry(portSchema, 'scheme', 25, 1), 5, 2), ['"HTTP"\n']);
});

test('the protobuf form carries paths with operations, parameters and answers', (t) => {
  const bytes = encodeSwagger(document);
  t.deepEqual(texts(bytes, 8, 2, 1).sort(), Object.keys(document.paths).sort());
  const item = entry(bytes, '/api/v1/namespaces/{namespace}/pods/{name}', 8, 2);
  t.deepEqual(texts(item, 8, 5), ['patchCoreV1NamespacedPod']);
  t.true(texts(item, 8, 8, 1, 2, 3, 4).includes('fieldValidation'));
  t.deepEqual(texts(item, 8, 8, 1, 1, 5, 1), ['#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Patch']);
  t.deepEqual(texts(item, 9, 1, 2, 4, 4), ['name', 'namespace']);
  const gvk = texts(entry(all(item, 8)[0] as Uint8Array, 'x-kubernetes-group-version-kind', 13), 2)[0] ?? '';
  t.deepEqual(JSON.parse(gvk), { group: '', version: 'v1', kind: 'Pod' });
  t.deepEqual(texts(item, 2, 9, 1, 1), ['200', '401']);
  const collection = entry(bytes, '/api/v1/watch/namespaces/{namespace}/pods', 8, 2);
  t.deepEqual(all(collection, 2, 11), [1]);
});

test('both forms are built once, and again when the kinds change', (t) => {
  let kinds: readonly KindDefinition[] = [configMap];
  const source = { kinds: () => kinds, generation: 1 };
  const documents = new OpenApiDocuments(source);
  const [json, binary] = [documents.swagger('json'), documents.swagger('protobuf')];
  t.is(documents.swagger('json'), json);
  t.is(documents.swagger('protobuf'), binary);
  t.not(json.hash, binary.hash);
  kinds = [configMap, pod];
  source.generation = 2;
  t.not(documents.swagger('json').hash, json.hash);
  t.true(documents.swagger('protobuf').bytes.length > binary.bytes.length);
});
