/** Why a container has no image; `reason` is what its waiting state shows. */
export class ImageProblem extends Error {
  readonly reason: 'ErrImagePull' | 'ImagePullBackOff' | 'ErrImageNeverPull' | 'InvalidImageName' | 'ImageInspectError';
  /** When trying again makes sense. */
  readonly retryAfterMs: number | undefined;

  constructor(reason: ImageProblem['reason'], message: string, retryAfterMs?: number) {
    super(message);
    this.name = 'ImageProblem';
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}
