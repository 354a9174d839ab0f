import test from 'ava';
import { serveReal } from './support/real-plane.ts';
import { open } from './support/serve.ts';

const range = <T>(length: number, of: (i: number) => T) => Array.from({ length }, (_, i) => of(i));
const configMap = (metadata: object, rest: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'c', ...metadata },
  ...rest,
});
const nested = (levels: number, inner: string) => {
  const key = 'k'.repeat(250);
  return `{"metadata":{"name":"c"},${`"${key}":{`.repeat(levels)}${inner}${'}'.repeat(levels)}}`;
};

/** Requests whose responses would be many times their own size without limits. */
const hostile: Record<
  string,
  { readonly body: unknown; readonly path?: string; readonly headers?: Record<string, string> }
> = {
  'invalid labels': { body: configMap({ labels: Object.fromEntries(range(60_000, (i) => [`no label ${i}`, ''])) }) },
  'invalid finalizers': { body: configMap({ finalizers: range(60_000, (i) => `no finalizer ${i}`) }) },
  'owners that are all controllers': {
    body: configMap({
      ownerReferences: range(12_000, (i) => ({
        apiVersion: 'v1',
        kind: 'Pod',
        name: `p${i}`,
        uid: `${i}`,
        controller: true,
      })),
    }),
  },
  'invalid data keys of great length': {
    body: configMap({}, { data: Object.fromEntries(range(300, (i) => [`/${'x'.repeat(3000)}${i}`, ''])) }),
  },
  'a name of a megabyte': { body: configMap({ name: '\u0001'.repeat(300_000) }) },
  'a kind of a megabyte': { body: configMap({}, { kind: '\u0001'.repeat(300_000) }) },
  'a value of the wrong type with a key of a megabyte': {
    body: configMap({}, { data: { ['\u0001'.repeat(300_000)]: 1 } }),
  },
  'unknown fields': { body: nested(150, range(2000, (i) => `"a${i}":1`).join(',')), path: '?fieldValidation=Strict' },
  'repeated fields': { body: nested(150, range(2000, () => '"a":1').join(',')), path: '?fieldValidation=Strict' },
};

for (const [what, { body, path = '' }] of Object.entries(hostile)) {
  test(`a response is not many times larger than its request: ${what}`, async (t) => {
    const { port } = await serveReal(t);
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const response = await open(port, 'POST', `/api/v1/namespaces/default/configmaps${path}`, { body: text });
    let bytes = 0;
    for await (const chunk of response) bytes += (chunk as Buffer).length;
    t.true((response.statusCode ?? 0) >= 400 && (response.statusCode ?? 0) < 500, `${response.statusCode}`);
    t.true(bytes < 256 * 1024, `${text.length} bytes are answered with ${bytes}`);
    const heads = response.rawHeaders.join('').length;
    t.true(heads < 8192, `the head has ${heads} bytes`);
  });
}

test('warnings are limited to 4 KiB and fifty headers, and the write succeeds', async (t) => {
  const { port } = await serveReal(t);
  const create = async (name: string, fields: readonly string[]) => {
    const body = JSON.stringify({ ...configMap({ name }), ...Object.fromEntries(fields.map((field) => [field, 1])) });
    const response = await open(port, 'POST', '/api/v1/namespaces/default/configmaps?fieldValidation=Warn', { body });
    response.resume();
    t.is(response.statusCode, 201);
    return response.rawHeaders.filter((_, i, all) => all[i - 1] === 'Warning');
  };
  t.deepEqual(await create('one', ['x']), ['299 - "unknown field \\"x\\""']);

  const short = await create(
    'many',
    range(200, (i) => `f${i}`),
  );
  t.is(short.length, 50);
  t.is(short.at(-1), '299 - "further warnings were omitted"');

  const long = await create(
    'long',
    range(40, (i) => `${i}${'x'.repeat(600)}`),
  );
  t.true(long.length > 5);
  t.true(long.join('').length <= 4096);
  t.true(long.slice(0, -1).every((value) => value.length <= 256 + 12));
  t.is(long.at(-1), '299 - "further warnings were omitted"');
});
