/** A volume cannot be provided now. The pod waits, and the volume is retried. */
export class VolumeProblem extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'VolumeProblem';
  }
}
