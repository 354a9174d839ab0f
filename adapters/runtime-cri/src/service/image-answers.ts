import { type ImageService, type PullRequest, RuntimeError } from '@keelson/container-runtime';
import { Calls } from '../api/calls.ts';
import type { PullImageRequest } from '../api/image.ts';
import type { Fields } from '../wire/message.ts';
import { type Answer, answer } from './answer.ts';
import { fromAuth, imageInfo, toImage } from './convert/to-image.ts';
import { toFilesystem } from './convert/to-stats.ts';

interface NamesImage {
  readonly image?: { readonly image?: string | undefined } | undefined;
}

function named({ image }: NamesImage): string {
  if (!image?.image) throw new RuntimeError('InvalidArgument', 'an image must be named');
  return image.image;
}

/** What a request to pull asks for. @throws `InvalidArgument` */
export function pullOf(
  request: Fields<typeof PullImageRequest>,
): [reference: string, request: Pick<PullRequest, 'auth'>] {
  const auth = request.auth && fromAuth(request.auth);
  return [named(request), auth === undefined ? {} : { auth }];
}

/** The calls about images. */
export function imageAnswers(images: ImageService): readonly Answer[] {
  return [
    answer(Calls.listImages, async ({ filter }, signal) => {
      const reference = filter?.image?.image || undefined;
      return { images: (await images.listImages(reference, { signal })).map(toImage) };
    }),
    answer(Calls.imageStatus, async (request, signal) => {
      const image = await images.imageStatus(named(request), { signal });
      // That it is not there is an answer, too.
      if (image === undefined) return {};
      return { image: toImage(image), ...(request.verbose && { info: imageInfo(image) }) };
    }),
    answer(Calls.pullImage, async (request, signal) => ({
      imageRef: await images.pullImage(...pullOf(request), { signal }),
    })),
    answer(Calls.removeImage, async (request, signal) => {
      await images.removeImage(named(request), { signal });
      return {};
    }),
    answer(Calls.imageFsInfo, async (_, signal) => ({
      imageFilesystems: (await images.imageFsInfo({ signal })).map(toFilesystem),
    })),
  ];
}
