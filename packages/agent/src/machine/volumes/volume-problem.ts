/** A volume that cannot be provided now; the pod waits and it is tried again. */
export class VolumeProblem extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'VolumeProblem';
  }
}
