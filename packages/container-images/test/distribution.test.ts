import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { installPrograms } from '@keelson/test-support';
import test from 'ava';
import { push, startDistribution } from './support/distribution.ts';
import { fileOf, layerOf, openStore } from './support/workshop.ts';

const missing = installPrograms(['docker-registry'], ['docker-registry']);
const withRegistry = missing.length === 0 ? test : test.skip;
const auth = { username: 'user', password: 'pass' };

withRegistry('images of both formats are pulled from the reference implementation of a registry', async (t) => {
  t.timeout(60_000);
  const host = await startDistribution(t);
  const layers = [layerOf([fileOf('a', 3_000_000)]), layerOf([{ name: 'b', content: 'above' }])];
  for (const format of ['oci', 'docker'] as const) {
    const id = await push(host, `team/${format}`, '1', { layers, format, config: { Cmd: [format] } });
    const store = await openStore(t);
    t.is(await store.pullImage(`${host}/team/${format}:1`, { auth }), id);
    const image = store.find(id);
    t.is(image && readFileSync(join(store.rootOf(image), 'b'), 'utf8'), 'above');
    const [digest = ''] = image?.repoDigests ?? [];
    t.is(await (await openStore(t)).pullImage(digest, { auth }), id);
  }
});

withRegistry('rejections by the reference implementation have distinct errors', async (t) => {
  t.timeout(60_000);
  const host = await startDistribution(t);
  await push(host, 'app', '1', { layers: [layerOf([{ name: 'b' }])] });
  const store = await openStore(t);
  const pull = (name: string, given: object) => store.pullImage(`${host}/${name}`, given);
  await t.throwsAsync(pull('app:1', {}), { code: 'PullFailed', message: /requires credentials/ });
  await t.throwsAsync(pull('app:1', { auth: { ...auth, password: 'x' } }), {
    code: 'PullFailed',
    message: /rejected the credentials/,
  });
  await t.throwsAsync(pull('app:2', { auth }), { code: 'ImageNotFound' });
  await t.throwsAsync(pull('none:1', { auth }), { code: 'ImageNotFound' });
  await t.throwsAsync(pull(`app@sha256:${'1'.repeat(64)}`, { auth }), { code: 'ImageNotFound' });
});
