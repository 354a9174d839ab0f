/** Why a container was not started; `reason` is the reason of its waiting state. */
export class StartProblem extends Error {
  readonly reason: string;
  /** When the start is retried; undefined = at the next regular sync of the pod. */
  readonly retryAfterMs: number | undefined;

  constructor(reason: string, message: string, retryAfterMs?: number) {
    super(message);
    this.name = 'StartProblem';
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}
