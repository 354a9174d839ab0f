import { type PullProgress, RuntimeError } from '@keelson/container-runtime';
import { addAbortListener, removeAbortListener } from '@keelson/core/runtime';
import { PullImageRequest, PullImageStep, pullWithProgressPath } from './api/image.ts';
import { type CriConnection, translateCriError } from './connection/cri-connection.ts';
import type { Fields } from './wire/message.ts';

/** Pulls an image from a service of this package, which reports the progress. @throws a `RuntimeError` */
export async function pullWithProgress(
  connection: CriConnection,
  request: Fields<typeof PullImageRequest>,
  onProgress: (progress: PullProgress) => void,
  signal?: AbortSignal,
): Promise<{ readonly imageRef: string }> {
  const stream = connection.streamAt(pullWithProgressPath, PullImageRequest.encode(request));
  const cancel = () => stream.cancel();
  let imageRef: string | undefined;
  stream.on('data', (bytes: Buffer) => {
    const { imageRef: reference, receivedBytes = 0n, totalBytes } = PullImageStep.decode(bytes);
    if (reference !== undefined) imageRef = reference;
    else
      onProgress({
        receivedBytes: Number(receivedBytes),
        ...(totalBytes !== undefined && { totalBytes: Number(totalBytes) }),
      });
  });
  const ended = new Promise<void>((resolve, reject) => {
    stream.once('end', resolve);
    stream.on('error', reject);
  });
  addAbortListener(signal, cancel);
  if (signal?.aborted) cancel();
  try {
    await ended;
  } catch (error) {
    if (signal?.aborted) throw new RuntimeError('Aborted', 'PullImage: the caller gave up', { cause: signal.reason });
    throw translateCriError(error);
  } finally {
    removeAbortListener(signal, cancel);
  }
  if (imageRef === undefined) throw new RuntimeError('Unavailable', 'PullImage: the stream ended without a result');
  return { imageRef };
}
