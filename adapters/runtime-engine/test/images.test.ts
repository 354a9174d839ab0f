import { createHash } from 'node:crypto';
import { LoopbackRegistry } from '@keelson/test-support';
import test from 'ava';
import { sandbox, started } from './support/pods.ts';
import { closePodmanAfterwards, engineTest, podman } from './support/shared-podman.ts';

const registry = await LoopbackRegistry.open();
await podman?.relay(Number(registry.host.split(':')[1]));
let images = 0;
const infra = `${registry.host}/team/pause:1`;
registry.add('team/pause:1', {
  layers: [podman?.layer ?? ''],
  config: { Cmd: ['/bin/sleep', '100000'], Env: ['PATH=/bin'] },
});

/** A reference to a new, unique image. */
function publish(): string {
  images += 1;
  const name = `team/app-${images}:1`;
  registry.add(name, {
    layers: [podman?.layer ?? ''],
    config: { Env: ['PATH=/bin', `N=${images}`], Labels: { n: String(images) } },
  });
  return `${registry.host}/${name}`;
}

closePodmanAfterwards();
test.after.always(() => registry[Symbol.asyncDispose]());

engineTest(
  'errors of a registry have their own codes, also when the engine reports them in a successful response',
  async (t, opened) => {
    const { images: store } = opened.engine;
    t.teardown(() => registry.behave({ auth: undefined, cutAfter: undefined, refuse: undefined }));
    await t.throwsAsync(store.pullImage(`${registry.host}/team/none:1`), { code: 'ImageNotFound' });
    registry.behave({ auth: { kind: 'basic', username: 'user', password: 'secret' } });
    const reference = publish();
    await t.throwsAsync(store.pullImage(reference), { code: 'PullFailed', message: /unauthorized/ });
    const auth = { username: 'user', password: 'secret' };
    await t.throwsAsync(store.pullImage(reference, { auth: { ...auth, password: 'wrong' } }), { code: 'PullFailed' });
    const id = await store.pullImage(reference, { auth });
    t.is((await store.imageStatus(id))?.config.labels?.['n'], String(images));
    registry.behave({
      auth: undefined,
      refuse: ({ path }) => (path.includes('/blobs/') ? { status: 500 } : undefined),
    });
    await t.throwsAsync(store.pullImage(publish()), { code: 'PullFailed' });
  },
);

engineTest('a stalled pull ends by its deadline, and can be repeated', async (t, opened) => {
  const { images: store } = opened.engine;
  // The layer of the other images is already in the store, so this image has its own.
  const bytes = Buffer.from(`${opened.folder}`.repeat(2000));
  const diffId = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  registry.add('team/halting:1', { layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar', bytes, diffId }] });
  registry.behave({ stallAfter: 1000 });
  t.teardown(() => registry.behave({ stallAfter: undefined }));
  const reference = `${registry.host}/team/halting:1`;
  await t.throwsAsync(store.pullImage(reference, {}, { timeoutMs: 1500 }), { code: 'DeadlineExceeded' });
  await t.throwsAsync(store.pullImage(reference, {}, { signal: AbortSignal.timeout(500) }), { code: 'Aborted' });
  registry.behave({ stallAfter: undefined });
  t.regex(await store.pullImage(publish()), /^sha256:/);
});

engineTest('an image is removed with all its names, unless a container uses it', async (t, opened) => {
  const { images: store, runtime } = opened.engine;
  const reference = publish();
  const id = await store.pullImage(reference);
  await opened.podman.command('tag', reference, 'local.test/another:2');
  t.deepEqual([...((await store.imageStatus(id))?.repoTags ?? [])].sort(), [reference, 'local.test/another:2'].sort());
  const podId = await sandbox(opened);
  const container = await started(opened, podId, 'sleep 1000', { image: id });
  t.is((await runtime.containerStatus(container)).imageId, id);
  await t.throwsAsync(store.removeImage(id), { code: 'InvalidState' });
  t.is((await runtime.containerStatus(container)).state, 'running');
  await runtime.removePodSandbox(podId);
  await store.removeImage(id);
  t.is(await store.imageStatus(id), undefined);
  t.is(await store.imageStatus('local.test/another:2'), undefined);
});

engineTest(
  'a missing sandbox image is pulled, and excluded from garbage collection',
  async (t, opened) => {
    const { images: store, runtime } = opened.engine;
    const pods = await Promise.all([sandbox(opened), sandbox(opened)]);
    t.true((await store.imageStatus(infra))?.pinned);
    for (const id of pods) t.is((await runtime.podSandboxStatus(id)).state, 'ready');
  },
  { infraImage: infra },
);
