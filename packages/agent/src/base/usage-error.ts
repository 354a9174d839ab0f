/** A mistake in how the command was called: one sentence that names the option and says what is wrong; exit code 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}
