import test from 'ava';
import { mergeSwagger, type SwaggerPart, swaggerPart } from '../../src/openapi/swagger-part.ts';
import { encodeSwagger } from '../../src/openapi/swagger-protobuf.ts';
import type { SwaggerDocument } from '../../src/openapi/swagger-types.ts';

const shop = { group: 'shop', version: 'v1' };
const ref = (name: string) => ({ $ref: `#/definitions/${name}` });
const toyKind = { group: 'shop', version: 'v1', kind: 'Toy' };
const otherKind = { group: '', version: 'v1', kind: 'Options' };
const foreign = {
  swagger: '2.0',
  parameters: { pretty: { name: 'pretty', in: 'query', type: 'string', description: 'Indented.', uniqueItems: true } },
  paths: {
    '/apis/shop/v1/toys': {
      parameters: [{ $ref: '#/parameters/pretty' }, { $ref: '#/parameters/missing' }],
      post: {
        operationId: 'createToy',
        parameters: [{ name: 'body', in: 'body', required: true, schema: ref('Toy') }],
        responses: { 200: { description: 'OK', schema: ref('Toy') } },
      },
    },
    '/apis/shop/v2/toys': { get: { responses: { 200: { schema: ref('Unused') } } } },
  },
  definitions: {
    Toy: {
      type: 'object',
      properties: { meta: { description: 'x', allOf: [ref('Meta')] }, again: ref('Toy'), options: ref('Options') },
      'x-kubernetes-group-version-kind': [toyKind],
    },
    Meta: { type: 'object', properties: { name: { type: 'string' } } },
    Options: { type: 'object', 'x-kubernetes-group-version-kind': [toyKind] },
    Unused: { type: 'object' },
  },
};
const own: SwaggerDocument = {
  swagger: '2.0',
  info: { title: 'own', version: '1' },
  paths: { '/api': {} },
  definitions: {
    Meta: { type: 'object', properties: { uid: { type: 'string' } } },
    Options: { type: 'object', 'x-kubernetes-group-version-kind': [otherKind] },
  },
};

test('a part has the paths of its version and the definitions that they use, with shared parameters repeated', (t) => {
  const part = swaggerPart(foreign, shop);
  t.deepEqual(Object.keys(part?.paths ?? {}), ['/apis/shop/v1/toys']);
  t.deepEqual(Object.keys(part?.definitions ?? {}).sort(), ['Meta', 'Options', 'Toy']);
  t.deepEqual(part?.paths['/apis/shop/v1/toys']?.parameters, [
    { name: 'pretty', in: 'query', type: 'string', description: 'Indented.', uniqueItems: true },
  ]);
});

test('definitions that differ get numbers, and equal ones have the kinds of both documents', (t) => {
  const merged = mergeSwagger(own, [swaggerPart(foreign, shop) as SwaggerPart]);
  t.deepEqual(Object.keys(merged.definitions).sort(), ['Meta', 'Meta_v2', 'Options', 'Toy']);
  t.deepEqual(merged.definitions['Toy']?.properties?.['meta']?.allOf, [ref('Meta_v2')]);
  t.deepEqual(merged.definitions['Options']?.['x-kubernetes-group-version-kind'], [otherKind, toyKind]);
  t.deepEqual(Object.keys(merged.paths), ['/api', '/apis/shop/v1/toys']);
  t.true(encodeSwagger(merged).length > 100);
});

test('two parts with the same definitions share them, whatever their names became', (t) => {
  const next = structuredClone(foreign);
  const paths = { '/apis/shop/v2/toys': next.paths['/apis/shop/v1/toys'] };
  const parts = [swaggerPart(foreign, shop), swaggerPart({ ...next, paths }, { ...shop, version: 'v2' })];
  const merged = mergeSwagger(own, parts as SwaggerPart[]);
  t.deepEqual(Object.keys(merged.definitions).sort(), ['Meta', 'Meta_v2', 'Options', 'Toy']);
});

test('parts of documents with wrong types are dropped', (t) => {
  for (const document of [null, [], {}, { paths: [] }, { paths: { '/apis/other/v1/x': {} } }])
    t.is(swaggerPart(document, shop), undefined);
  const post = { parameters: [1, { in: 'header' }, { in: 'path', name: 3 }], responses: [], tags: [1, 'a'] };
  const document = { paths: { '/apis/shop/v1/a': { post, get: 5 }, '/apis/shop/v1/b': null }, definitions: 'x' };
  const part = swaggerPart(document, shop) as SwaggerPart;
  t.deepEqual(part.paths['/apis/shop/v1/a']?.post?.tags, ['a']);
  t.deepEqual(part.paths['/apis/shop/v1/a']?.post?.parameters, [
    { name: '', description: '', in: 'path', type: 'string', uniqueItems: true },
  ]);
  t.is(part.paths['/apis/shop/v1/a']?.get, undefined);
  t.true(encodeSwagger(mergeSwagger(own, [part])).length > 0);
});
