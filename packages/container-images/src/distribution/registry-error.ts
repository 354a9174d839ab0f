import { RuntimeError } from '@keelson/container-runtime';

/**
 * - `unauthorized`: the registry wants other credentials, or any; it may also say so of what does not exist.
 * - `notFound`: no such image.
 * - `refused`: another status than success: too many requests, a fault of the registry.
 * - `unreachable`: no connection, no answer in time, or one that ended early.
 * - `invalid`: an answer that does not follow the protocol, or is too large.
 */
export type RegistryErrorReason = 'unauthorized' | 'notFound' | 'refused' | 'unreachable' | 'invalid';

/** Why a registry did not give an image: `ImageNotFound` for `notFound`, else `PullFailed`. */
export class RegistryError extends RuntimeError {
  readonly reason: RegistryErrorReason;

  constructor(reason: RegistryErrorReason, message: string, details: { readonly cause?: unknown } = {}) {
    super(reason === 'notFound' ? 'ImageNotFound' : 'PullFailed', message, details);
    this.name = 'RegistryError';
    this.reason = reason;
  }
}
