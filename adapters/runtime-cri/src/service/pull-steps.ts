import type { ImageService, PullProgress } from '@keelson/container-runtime';
import { PullImageRequest, PullImageStep } from '../api/image.ts';
import { decodeRequest } from './answer.ts';
import { pullOf } from './image-answers.ts';

/**
 * A pull, step by step. Whoever reads slowly misses steps that later ones have overtaken, and never the last.
 *
 * @throws a `RuntimeError`
 */
export async function* pullSteps(images: ImageService, bytes: Buffer, signal: AbortSignal): AsyncIterable<Buffer> {
  const [reference, auth] = pullOf(decodeRequest('PullImage', PullImageRequest, bytes));
  let latest: PullProgress | undefined;
  let ended = false;
  let wake = () => {};
  const onProgress = (progress: PullProgress) => {
    latest = progress;
    wake();
  };
  const pulling = images.pullImage(reference, { ...auth, onProgress }, { signal }).finally(() => {
    ended = true;
    wake();
  });
  // It may fail while a step is on its way.
  pulling.catch(() => {});
  while (!ended || latest !== undefined) {
    if (latest === undefined) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      continue;
    }
    const { receivedBytes, totalBytes } = latest;
    latest = undefined;
    const total = totalBytes === undefined ? {} : { totalBytes: BigInt(totalBytes) };
    yield PullImageStep.encode({ receivedBytes: BigInt(receivedBytes), ...total });
  }
  yield PullImageStep.encode({ imageRef: await pulling });
}
