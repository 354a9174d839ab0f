/** A client config that cannot be used, and what is wrong with it. Messages never hold secrets. */
export class KubeconfigError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'KubeconfigError';
  }
}
