import { RuntimeError } from '@keelson/container-runtime';

/**
 * - `unauthorized`: the credentials are missing or rejected. Registries also return it for images that do not exist.
 * - `notFound`: the image does not exist.
 * - `refused`: another error status, such as too many requests or an internal error.
 * - `unreachable`: no connection, no response in time, or an incomplete response.
 * - `invalid`: a response that violates the protocol or is too large.
 */
export type RegistryErrorReason = 'unauthorized' | 'notFound' | 'refused' | 'unreachable' | 'invalid';

/** An error of a registry. The code is `ImageNotFound` for `notFound`, otherwise `PullFailed`. */
export class RegistryError extends RuntimeError {
  readonly reason: RegistryErrorReason;

  constructor(reason: RegistryErrorReason, message: string, details: { readonly cause?: unknown } = {}) {
    super(reason === 'notFound' ? 'ImageNotFound' : 'PullFailed', message, details);
    this.name = 'RegistryError';
    this.reason = reason;
  }
}
