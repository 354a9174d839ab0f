import { counter, flag, list, text, textMap, texts, wrappedInteger } from '../wire/kinds.ts';
import { at, message } from '../wire/message.ts';
import { FilesystemUsageMessage, ImageSpec } from './common.ts';
import { PodSandboxConfigMessage } from './sandbox.ts';

export const ImageMessage = message({
  id: at(1, text),
  repoTags: at(2, texts),
  repoDigests: at(3, texts),
  size: at(4, counter),
  uid: at(5, wrappedInteger),
  username: at(6, text),
  pinned: at(8, flag),
});

export const ListImagesRequest = message({ filter: at(1, message({ image: at(1, ImageSpec) })) });
export const ListImagesResponse = message({ images: at(1, list(ImageMessage)) });

/** The message of all requests that contain only an image. Only `ImageStatus` uses `verbose`. */
export const ImageRequest = message({ image: at(1, ImageSpec), verbose: at(2, flag) });
export const ImageStatusResponse = message({ image: at(1, ImageMessage), info: at(2, textMap) });

export const PullImageRequest = message({
  image: at(1, ImageSpec),
  auth: at(
    2,
    message({
      username: at(1, text),
      password: at(2, text),
      /** Base64 of `user:password`, as in the configuration files of clients. */
      auth: at(3, text),
      serverAddress: at(4, text),
      identityToken: at(5, text),
      registryToken: at(6, text),
    }),
  ),
  sandboxConfig: at(3, PodSandboxConfigMessage),
});
export const PullImageResponse = message({ imageRef: at(1, text) });
/** A message of the stream of {@link pullWithProgressPath}: the progress or, in the last message, the result. */
export const PullImageStep = message({
  imageRef: at(1, text),
  receivedBytes: at(2, counter),
  totalBytes: at(3, counter),
});

/** Path of a call outside of CRI that the service of this package provides: `PullImage` with a stream of progress. */
export const pullWithProgressPath = '/keelson.cri.v1.ImageService/PullImage';

export const ImageFsInfoResponse = message({ imageFilesystems: at(1, list(FilesystemUsageMessage)) });
