/** Why a container was not started; `reason` is what its waiting state shows. */
export class StartProblem extends Error {
  readonly reason: string;
  /** When trying again makes sense; undefined = at the next ordinary look at the pod. */
  readonly retryAfterMs: number | undefined;

  constructor(reason: string, message: string, retryAfterMs?: number) {
    super(message);
    this.name = 'StartProblem';
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}
