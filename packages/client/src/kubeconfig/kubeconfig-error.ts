/** An invalid kubeconfig. The message states the error and never contains secrets. */
export class KubeconfigError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'KubeconfigError';
  }
}
