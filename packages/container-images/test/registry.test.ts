import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { LoopbackRegistry, type RegistryLayer } from '@keelson/test-support';
import test from 'ava';
import { RegistryError } from '../src/index.ts';
import { fileOf, layerOf, openRegistry, openStore, scratchFolder } from './support/workshop.ts';

const small = () => [layerOf([{ name: 'file', content: 'hello' }])];
const fails = (code: string, reason?: string, message?: RegExp) => ({
  code,
  ...(reason === undefined ? {} : { instanceOf: RegistryError }),
  ...(message === undefined ? {} : { message }),
});

for (const format of ['oci', 'docker'] as const) {
  test(`an image is pulled by tag and by digest, with the values of its configuration: ${format}`, async (t) => {
    const registry = await openRegistry(t);
    const store = await openStore(t);
    const config = {
      Env: ['A=b'],
      Cmd: ['c'],
      Entrypoint: ['e'],
      WorkingDir: '/w',
      User: '12:34',
      StopSignal: 'SIGINT',
    };
    const { id, digest } = registry.add('team/app:1', { layers: small(), config, format });
    t.is(await store.pullImage(`${registry.host}/team/app:1`), id);
    const image = await store.imageStatus(`${registry.host}/team/app@${digest}`);
    t.like(image, {
      id,
      uid: 12,
      repoTags: [`${registry.host}/team/app:1`],
      repoDigests: [`${registry.host}/team/app@${digest}`],
    });
    t.deepEqual(image?.config, {
      env: ['A=b'],
      cmd: ['c'],
      entrypoint: ['e'],
      workingDir: '/w',
      user: '12:34',
      stopSignal: 'SIGINT',
    });
    t.is(image && readFileSync(join(store.rootOf(image), 'file'), 'utf8'), 'hello');
    t.is(await (await openStore(t)).pullImage(`${registry.host}/team/app@${digest}`), id);
  });

  test(`of an index, the image for this machine is pulled: ${format}`, async (t) => {
    const registry = await openRegistry(t);
    const store = await openStore(t);
    const mine = process.arch === 'x64' ? 'amd64' : process.arch;
    const other = { layers: [layerOf([{ name: 'file', content: 'other' }])], architecture: 's390x' };
    registry.addIndex('app:1', [other, { layers: small(), architecture: mine }], format);
    registry.addIndex('app:other', [other], format);
    const image = store.find(await store.pullImage(`${registry.host}/app:1`));
    t.is(image && readFileSync(join(store.rootOf(image), 'file'), 'utf8'), 'hello');
    await t.throwsAsync(store.pullImage(`${registry.host}/app:other`), {
      code: 'ImageNotFound',
      message: /no variant for linux/,
    });
  });
}

test('a missing tag, digest or repository is reported as not found', async (t) => {
  const registry = await openRegistry(t);
  const store = await openStore(t);
  registry.add('app:1', { layers: small() });
  for (const name of ['app:2', `app@sha256:${'0'.repeat(64)}`, 'none:1', 'none']) {
    const error = await t.throwsAsync<RegistryError>(
      store.pullImage(`${registry.host}/${name}`),
      fails('ImageNotFound', 'notFound'),
    );
    t.is(error?.reason, 'notFound');
  }
  await t.throwsAsync(store.pullImage('Not A Name'), { code: 'InvalidArgument' });
});

test('a request on a kept connection that the registry has closed is sent again', async (t) => {
  const registry = await openRegistry(t);
  const store = await openStore(t);
  registry.add('app:1', { layers: small() });
  let connections = 0;
  const relay = createServer((client) => {
    connections += 1;
    const upstream = connect(Number(registry.host.split(':')[1]), '127.0.0.1');
    upstream.pipe(client).on('error', () => {});
    client.once('data', (request) => {
      upstream.write(request);
      client.once('data', () => client.resetAndDestroy());
    });
    client.once('close', () => upstream.destroy());
  }).listen(0, '127.0.0.1');
  await once(relay, 'listening');
  t.teardown(() => relay.close());
  await store.pullImage(`127.0.0.1:${(relay.address() as AddressInfo).port}/app:1`);
  t.true(connections > 2, `${connections} connections`);
});

test('a tag that moves is pulled again, and the previous image stays until it is removed', async (t) => {
  const registry = await openRegistry(t);
  const store = await openStore(t);
  const reference = `${registry.host}/app:1`;
  registry.add('app:1', { layers: small() });
  const first = await store.pullImage(reference);
  registry.add('app:1', { layers: [layerOf([{ name: 'file', content: 'newer' }])] });
  const second = await store.pullImage(reference);
  t.not(first, second);
  t.deepEqual([store.find(first)?.repoTags, store.find(reference)?.id], [[], second]);
});

const credentials = { username: 'user', password: 'pass:word' };

test('basic credentials are sent to registries that request them, and wrong credentials are reported as such', async (t) => {
  const registry = await openRegistry(t, { auth: { kind: 'basic', ...credentials } });
  const store = await openStore(t);
  registry.add('app:1', { layers: small() });
  const reference = `${registry.host}/app:1`;
  for (const auth of [undefined, { username: 'user', password: 'wrong' }]) {
    const error = await t.throwsAsync<RegistryError>(
      store.pullImage(reference, auth && { auth }),
      fails('PullFailed', 'unauthorized'),
    );
    t.is(error?.reason, 'unauthorized');
    t.notRegex(error?.message ?? '', /wrong|dXNlcj/);
  }
  t.deepEqual(await store.listImages(), []);
  await store.pullImage(reference, { auth: credentials });
});

test('tokens are fetched for the repository with credentials or anonymously, once for all layers', async (t) => {
  const registry = await openRegistry(t, { auth: { kind: 'token' }, slow: { chunkBytes: 1000, everyMs: 1 } });
  const layers = ['a', 'b', 'c', 'd'].map((name) => layerOf([fileOf(name, 5000)]));
  registry.add('team/app:1', { layers });
  await (await openStore(t)).pullImage(`${registry.host}/team/app:1`);
  t.is(registry.count(/^\/token\?service=loopback&scope=repository%3Ateam%2Fapp%3Apull$/), 1);
  registry.behave({ auth: { kind: 'token', ...credentials } });
  registry.expireTokens();
  const store = await openStore(t);
  await t.throwsAsync(store.pullImage(`${registry.host}/team/app:1`), fails('PullFailed', 'unauthorized'));
  await t.throwsAsync(
    store.pullImage(`${registry.host}/team/app:1`, { auth: { ...credentials, password: '' } }),
    fails('PullFailed', 'x'),
  );
  await store.pullImage(`${registry.host}/team/app:1`, { auth: credentials });
});

test('a token that expires in the middle of a pull is fetched again', async (t) => {
  const registry = await openRegistry(t, { auth: { kind: 'token', ...credentials }, stallAfter: 100 });
  registry.add('app:1', { layers: ['a', 'b'].map((name) => layerOf([fileOf(name, 5000)])) });
  const store = await openStore(t, { registries: { parallelDownloads: 1 } });
  const pull = store.pullImage(`${registry.host}/app:1`, { auth: credentials });
  await registry.seen(/\/blobs\//);
  registry.expireTokens();
  registry.behave({ stallAfter: undefined });
  await pull;
  t.is(registry.count(/^\/token/), 2);
});

test('identity tokens are exchanged, and registry tokens are sent as they are', async (t) => {
  const registry = await openRegistry(t, { auth: { kind: 'token', ...credentials, identityToken: 'long-lived' } });
  registry.add('app:1', { layers: small() });
  await (await openStore(t)).pullImage(`${registry.host}/app:1`, { auth: { identityToken: 'long-lived' } });
  const token = registry.requests.at(-1)?.authorization?.replace('Bearer ', '');
  t.truthy(token);
  const before = registry.count(/^\/token/);
  await (await openStore(t)).pullImage(`${registry.host}/app:1`, { auth: { registryToken: token ?? '' } });
  t.is(registry.count(/^\/token/), before);
});

test('redirects to a storage service are followed, without the credentials', async (t) => {
  const registry = await openRegistry(t, { auth: { kind: 'basic', ...credentials }, redirect: true });
  registry.add('app:1', { layers: small() });
  await (await openStore(t)).pullImage(`${registry.host}/app:1`, { auth: credentials });
  const elsewhere = registry.requests.filter(({ storage }) => storage);
  t.is(elsewhere.length, 2);
  t.deepEqual(
    elsewhere.filter(({ authorization }) => authorization !== undefined),
    [],
  );
});

test('a storage service that requests credentials does not receive them', async (t) => {
  const registry = await openRegistry(t, { auth: { kind: 'basic', ...credentials }, redirect: true });
  registry.add('app:1', { layers: small() });
  registry.behave({ refuse: ({ storage }) => (storage ? { status: 401 } : undefined) });
  await t.throwsAsync(
    (await openStore(t)).pullImage(`${registry.host}/app:1`, { auth: credentials }),
    fails('PullFailed', 'x', /without a supported challenge/),
  );
  t.true(registry.requests.every(({ storage, authorization }) => !storage || authorization === undefined));
});

test('a redirect to another registry is followed, with a token of that registry and without the original credentials', async (t) => {
  const next = await openRegistry(t, { auth: { kind: 'token' } });
  const { id } = next.add('app:1', { layers: small() });
  const registry = await openRegistry(t, { auth: { kind: 'basic', ...credentials }, moved: `http://${next.host}` });
  t.is(await (await openStore(t)).pullImage(`${registry.host}/app:1`, { auth: credentials }), id);
  t.is(next.count(/^\/token/), 1);
  t.true(next.requests.every(({ authorization = 'Bearer' }) => authorization.startsWith('Bearer')));
  next.behave({ auth: { kind: 'basic', ...credentials } });
  await t.throwsAsync(
    (await openStore(t)).pullImage(`${registry.host}/app:1`, { auth: credentials }),
    fails('PullFailed', 'x', /requires credentials/),
  );
  registry.behave({ moved: `http://${registry.host}` });
  await t.throwsAsync(
    (await openStore(t)).pullImage(`${registry.host}/app:1`, { auth: credentials }),
    fails('PullFailed', 'x', /too many redirects/),
  );
});

test('content with a wrong digest is rejected and not stored, and a correct response later is accepted', async (t) => {
  const registry = await openRegistry(t, { wrongDigest: true });
  registry.add('app:1', { layers: small() });
  const folder = await scratchFolder(t);
  const store = await openStore(t, { folder });
  await t.throwsAsync(store.pullImage(`${registry.host}/app:1`), { code: 'PullFailed', message: /has the digest/ });
  t.deepEqual(filesIn(folder), ['blobs']);
  t.deepEqual(readdirSync(join(folder, 'blobs/sha256')), []);
  registry.behave({ wrongDigest: false });
  await store.pullImage(`${registry.host}/app:1`);
});

test('a layer whose compressed digest matches and whose uncompressed digest does not is rejected', async (t) => {
  const registry = await openRegistry(t);
  const [layer] = small() as [Exclude<RegistryLayer, string>];
  registry.add('app:1', { layers: [{ ...layer, bytes: gzipSync(Buffer.alloc(2048)) }] });
  await t.throwsAsync((await openStore(t)).pullImage(`${registry.host}/app:1`), {
    code: 'PullFailed',
    message: /has the digest/,
  });
});

test('responses that are interrupted, too long or invalid are failures of the pull, with their cause', async (t) => {
  const registry = await openRegistry(t, { cutAfter: 1000 });
  const { layers } = registry.add('app:1', { layers: [layerOf([fileOf('a', 9000)])] });
  const store = await openStore(t);
  const error = await t.throwsAsync<RegistryError>(
    store.pullImage(`${registry.host}/app:1`),
    fails('PullFailed', 'unreachable'),
  );
  t.is(error?.reason, 'unreachable');
  t.truthy(error?.cause);
  registry.behave({ cutAfter: undefined });
  const manifest = (layerSize: number) => ({
    schemaVersion: 2,
    config: { mediaType: '', digest: layers[0], size: 10_752 },
    layers: [{ mediaType: '', digest: layers[0], size: layerSize }],
  });
  registry.addManifest('long:1', 'application/vnd.oci.image.manifest.v1+json', manifest(100));
  registry.addManifest('nonsense:1', 'application/vnd.oci.image.manifest.v1+json', { layers: 'none' });
  registry.addManifest('path:1', 'application/vnd.oci.image.manifest.v1+json', {
    ...manifest(1),
    config: { digest: 'sha256:../../x' },
  });
  registry.addManifest('large:1', 'application/vnd.oci.image.manifest.v1+json', { filler: 'x'.repeat(5 << 20) });
  registry.addManifest('huge:1', 'application/vnd.oci.image.manifest.v1+json', manifest(1e15));
  registry.addManifest('old:1', 'application/vnd.docker.distribution.manifest.v1+json', { schemaVersion: 1 });
  for (const [name, message] of Object.entries({
    long: /longer than|configuration/,
    nonsense: /no layers/,
    path: /invalid digest/,
    large: /longer than 4194304 bytes/,
    huge: /larger than/,
  })) {
    await t.throwsAsync(store.pullImage(`${registry.host}/${name}:1`), { code: 'PullFailed', message }, name);
  }
  await t.throwsAsync(store.pullImage(`${registry.host}/old:1`), { code: 'Unsupported', message: /schema 1/ });
});

test('errors of a registry contain the status code; a missing blob is not a missing image', async (t) => {
  const registry = await openRegistry(t);
  registry.add('app:1', { layers: small() });
  const store = await openStore(t);
  for (const status of [403, 429, 500, 503]) {
    registry.behave({ refuse: () => ({ status }) });
    await t.throwsAsync(
      store.pullImage(`${registry.host}/app:1`),
      fails('PullFailed', 'x', new RegExp(`status ${status}`)),
    );
  }
  registry.behave({ refuse: ({ path }) => (path.includes('/blobs/') ? { status: 404 } : undefined) });
  await t.throwsAsync(store.pullImage(`${registry.host}/app:1`), fails('PullFailed', 'invalid'));
});

test('a pull fails when the registry does not respond, stalls within a layer or is unreachable', async (t) => {
  const registry = await openRegistry(t, { stallAfter: 0 });
  registry.add('app:1', { layers: [layerOf([fileOf('a', 9000)])] });
  const impatient = await openStore(t, { registries: { stallTimeoutMs: 300 } });
  await t.throwsAsync(
    impatient.pullImage(`${registry.host}/app:1`),
    fails('PullFailed', 'x', /received no data of sha256/),
  );
  const store = await openStore(t, { registries: { requestTimeoutMs: 300 } });
  const mute = createServer().listen(0, '127.0.0.1');
  t.teardown(() => mute.close());
  await once(mute, 'listening');
  const silent = `127.0.0.1:${(mute.address() as AddressInfo).port}`;
  await t.throwsAsync(store.pullImage(`${silent}/app:1`), fails('PullFailed', 'x', /no response within 0\.3 s/));
  const gone = await LoopbackRegistry.open();
  await gone[Symbol.asyncDispose]();
  const error = await t.throwsAsync<RegistryError>(
    impatient.pullImage(`${gone.host}/app:1`),
    fails('PullFailed', 'x', /cannot reach/),
  );
  t.like(error?.cause, { code: 'ECONNREFUSED' });
});

test('registries that are not on loopback are accessed over HTTPS, with the certificate authorities of the options', async (t) => {
  const folder = await scratchFolder(t);
  const command = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2',
    '-subj',
    '/CN=test',
  ];
  execFileSync(
    'openssl',
    [...command, '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', `${folder}/key`, '-out', `${folder}/cert`],
    {
      stdio: 'ignore',
    },
  );
  const [key, cert] = [readFileSync(`${folder}/key`, 'utf8'), readFileSync(`${folder}/cert`, 'utf8')];
  const registry = await LoopbackRegistry.open({ tls: { key, cert } });
  t.teardown(() => registry[Symbol.asyncDispose]());
  const { id } = registry.add('library/app:1', { layers: small() });
  const mirrors = { 'docker.io': [`https://${registry.host}/`] };
  t.is(await (await openStore(t, { registries: { ca: cert, mirrors } })).pullImage('app:1'), id);
  const mistrusting = await openStore(t, {
    registries: { mirrors: { 'reg.invalid': [`https://${registry.host}`] }, requestTimeoutMs: 5000 },
  });
  await t.throwsAsync(
    mistrusting.pullImage('reg.invalid/library/app:1'),
    fails('PullFailed', 'unreachable', /reg\.invalid/),
  );
});

test('mirrors are tried in order and without credentials; what none has is pulled from the registry itself', async (t) => {
  const [empty, mirror, own] = [await openRegistry(t), await openRegistry(t), await openRegistry(t)];
  const { id } = mirror.add('app:1', { layers: small() });
  const { id: owned } = own.add('app:2', { layers: small(), config: { Cmd: ['own'] } });
  const mirrors = { [own.host]: [`http://${empty.host}`, `http://${mirror.host}`] };
  const store = await openStore(t, { registries: { mirrors } });
  own.behave({ auth: { kind: 'basic', ...credentials } });
  t.is(await store.pullImage(`${own.host}/app:1`, { auth: credentials }), id);
  t.is(own.requests.length, 0);
  t.deepEqual(store.find(id)?.repoTags, [`${own.host}/app:1`]);
  t.is(await store.pullImage(`${own.host}/app:2`, { auth: credentials }), owned);
  t.true([...empty.requests, ...mirror.requests].every(({ authorization }) => authorization === undefined));
  mirror.behave({ wrongDigest: true });
  own.add('app:1', { layers: small() });
  await (await openStore(t, { registries: { mirrors } })).pullImage(`${own.host}/app:1`, { auth: credentials });
});

test('gzip and plain layers are unpacked, zstd where Node supports it; other media types are rejected by name', async (t) => {
  const registry = await openRegistry(t);
  const [plain] = small() as [Exclude<RegistryLayer, string>];
  const zipped = { ...plain, bytes: gzipSync(plain.bytes), mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip' };
  registry.add('app:1', { layers: [plain, zipped] });
  const store = await openStore(t);
  await store.pullImage(`${registry.host}/app:1`);
  // A frame of zstd with nothing in it.
  const zstd = {
    ...plain,
    bytes: Buffer.from('28b52ffd2400010000', 'hex'),
    mediaType: 'application/vnd.oci.image.layer.v1.tar+zstd',
  };
  registry.add('app:2', { layers: [zstd] });
  const supported = 'createZstdDecompress' in (await import('node:zlib'));
  const expected = supported ? { code: 'PullFailed' } : { code: 'Unsupported', message: /layer\.v1\.tar\+zstd/ };
  await t.throwsAsync(store.pullImage(`${registry.host}/app:2`), expected);
});

function filesIn(folder: string): string[] {
  return readdirSync(folder).sort();
}
