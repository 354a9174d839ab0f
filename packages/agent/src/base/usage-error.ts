/**
 * The command line or a configuration file is wrong. The message names the option and the error in one sentence; exit
 * code 2.
 */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}
