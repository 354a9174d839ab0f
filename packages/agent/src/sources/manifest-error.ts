/** A manifest that is no pod; the message says what is wrong with it, in one line. */
export class ManifestError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ManifestError';
  }
}
