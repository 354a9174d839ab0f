import assert from 'node:assert/strict';
import { type RuntimeCase, refused } from '../case-context.ts';

export const imageCases: readonly RuntimeCase[] = [
  {
    id: 'image.missing',
    title: 'a missing image has no status and is in no list',
    async run({ images, harness }) {
      assert.equal(await images.imageStatus(harness.missingImage), undefined);
      assert.deepEqual(await images.listImages(harness.missingImage), []);
    },
  },
  {
    id: 'image.pull-of-nothing',
    title: 'pulling an image that no source has is rejected and leaves nothing behind',
    async run({ images, harness }) {
      await refused(images.pullImage(harness.missingImage), 'ImageNotFound', 'PullFailed', 'Unsupported');
      // Other cases may pull at the same time, so only this image is listed.
      assert.equal(await images.imageStatus(harness.missingImage), undefined);
      const names = (await images.listImages()).flatMap(({ repoTags, repoDigests }) => [...repoTags, ...repoDigests]);
      const repository = harness.missingImage.replace(/:[^:/]*$/, '');
      assert.deepEqual(
        names.filter((name) => name.startsWith(repository)),
        [],
      );
    },
  },
  {
    id: 'image.bad-references',
    title: 'an invalid reference is rejected as such',
    async run({ images }) {
      for (const text of ['', 'UPPER', 'a b', '../x', 'x:', ':tag', 'x@sha256:zz', 'a//b', `${'x'.repeat(5000)}`]) {
        await refused(images.pullImage(text), 'InvalidArgument');
      }
    },
  },
  {
    id: 'image.builtin',
    title: 'a built-in image is listed, is pulled without effect, and cannot be removed',
    requires: ['builtinImage'],
    async run({ images, harness }) {
      const reference = harness.builtinImage ?? '';
      const image = await images.imageStatus(reference);
      assert(image?.pinned, 'pinned');
      assert.equal(await images.pullImage(reference), image.id);
      await images.removeImage(reference);
      assert((await images.listImages()).some(({ id }) => id === image.id));
    },
  },
  {
    id: 'image.pull',
    title: 'a pulled image is found by its reference and by the id that the pull returned',
    requires: ['pullableImage'],
    async run({ images, harness }) {
      const reference = harness.pullableImage ?? '';
      let progress = 0;
      const id = await images.pullImage(reference, { onProgress: ({ receivedBytes }) => (progress = receivedBytes) });
      const image = await images.imageStatus(reference);
      assert.equal(image?.id, id);
      assert.deepEqual(await images.imageStatus(id), image);
      assert(image && image.repoTags.length === 1 && image.sizeBytes > 0);
      if (harness.capabilities.pullProgress) assert(progress > 0, 'progress was reported');
      assert.equal(await images.pullImage(reference), id, 'pulling again changes nothing');
      assert.equal((await images.listImages()).filter((entry) => entry.id === id).length, 1);
    },
  },
  {
    id: 'image.pull-at-once',
    title: 'five concurrent pulls of one image return the same image',
    requires: ['pullableImage'],
    async run({ images, harness }) {
      const ids = await Promise.all(Array.from({ length: 5 }, () => images.pullImage(harness.pullableImage ?? '')));
      assert.equal(new Set(ids).size, 1);
    },
  },
  {
    id: 'image.remove',
    title: 'a removed image does not exist, and removing it again has no effect',
    requires: ['pullableImage'],
    async run({ images, harness }) {
      const reference = harness.pullableImage ?? '';
      const id = await images.pullImage(reference);
      await images.removeImage(id);
      assert.equal(await images.imageStatus(reference), undefined);
      await images.removeImage(reference);
      await images.removeImage(harness.missingImage);
      assert.equal(await images.pullImage(reference), id);
    },
  },
  {
    id: 'image.file-system',
    title: 'the file system of the images has a capacity that is at least its usage',
    async run({ images }) {
      const [info] = await images.imageFsInfo();
      assert(info && info.mountpoint !== '' && info.capacityBytes > 0);
      assert(info.usedBytes >= 0 && info.availableBytes >= 0 && info.availableBytes <= info.capacityBytes);
    },
  },
];
