/** The agent cannot run on this machine, for a reason that the operator must remove; exit code 1. */
export class MachineError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'MachineError';
  }
}
