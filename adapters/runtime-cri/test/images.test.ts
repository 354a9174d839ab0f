import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LoopbackRegistry, tarOf } from '@keelson/test-support';
import { SharedContainerd, testsOn } from './support/shared-containerd.ts';

const test = testsOn(await SharedContainerd.open());

test('an image of a private registry is pulled only with the correct credentials', async (t, {
  containerd,
  engine,
}) => {
  const { images } = engine;
  await using registry = await LoopbackRegistry.open({ auth: { kind: 'basic', username: 'user', password: 'secret' } });
  const config = {
    Env: ['A=b'],
    User: '1234',
    Entrypoint: ['/bin/sh'],
    Cmd: ['-c', 'true'],
    WorkingDir: '/tmp',
    StopSignal: 'SIGINT',
  };
  const added = registry.add('private:1', {
    layers: [containerd.layer],
    config: { ...config, Labels: { x: 'y' }, Volumes: { '/v': {} } },
  });
  const reference = `${registry.host}/private:1`;
  await t.throwsAsync(images.pullImage(reference), { code: 'PullFailed' });
  await t.throwsAsync(images.pullImage(reference, { auth: { username: 'user', password: 'wrong' } }), {
    code: 'PullFailed',
  });
  t.is(await images.imageStatus(reference), undefined);
  t.is(await images.pullImage(reference, { auth: { username: 'user', password: 'secret' } }), added.id);
  const image = await images.imageStatus(reference);
  t.deepEqual(image?.repoTags, [reference]);
  t.deepEqual(image?.repoDigests, [`${registry.host}/private@${added.digest}`]);
  t.is(image?.uid, 1234);
  t.deepEqual(image?.config, {
    ...{
      user: '1234',
      env: ['A=b'],
      entrypoint: ['/bin/sh'],
      cmd: ['-c', 'true'],
      workingDir: '/tmp',
      stopSignal: 'SIGINT',
    },
    ...{ labels: { x: 'y' }, volumes: ['/v'] },
  });
  t.deepEqual(
    (await images.listImages()).find(({ id }) => id === added.id),
    image,
  );
  await images.removeImage(reference);
  t.deepEqual(await images.listImages(reference), []);
});

test('a missing image and an invalid response of the registry have different error codes', async (t, {
  containerd,
  engine,
}) => {
  const { images } = engine;
  await using registry = await LoopbackRegistry.open();
  registry.add('whole:1', { layers: [containerd.layer], config: { Labels: { which: 'whole' } } });
  await t.throwsAsync(images.pullImage(`${registry.host}/whole:2`), { code: 'ImageNotFound' });
  registry.behave({ wrongDigest: true });
  await t.throwsAsync(images.pullImage(`${registry.host}/whole:1`), { code: 'PullFailed' });
});

test('a stalled pull ends by its deadline, and succeeds when the registry responds', async (t, { engine }) => {
  const { images } = engine;
  const folder = await mkdtemp('/tmp/keelson-cri-layer-');
  t.teardown(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, 'files'));
  await writeFile(join(folder, 'files', 'noise'), randomBytes(100_000));
  tarOf(join(folder, 'files'), join(folder, 'layer.tar'));
  await using registry = await LoopbackRegistry.open({ stallAfter: 1000 });
  const { id } = registry.add('stalls:1', { layers: [join(folder, 'layer.tar')] });
  const reference = `${registry.host}/stalls:1`;
  await t.throwsAsync(images.pullImage(reference, {}, { timeoutMs: 500 }), { code: 'DeadlineExceeded' });
  const controller = new AbortController();
  const pulling = t.throwsAsync(images.pullImage(reference, {}, { signal: controller.signal }), { code: 'Aborted' });
  controller.abort();
  await pulling;
  registry.behave({ stallAfter: undefined });
  t.is(await images.pullImage(reference), id);
});

test('images are read from a separate image endpoint', async (t, shared) => {
  const { containerd } = shared;
  const other = await shared.another({
    endpoint: `unix://${containerd.folder}/missing.sock`,
    imageEndpoint: containerd.endpoint,
  });
  t.true((await other.images.listImages()).length > 0);
  await t.throwsAsync(other.runtime.version(), { code: 'Unavailable' });
  await other.runtime[Symbol.asyncDispose]();
});
