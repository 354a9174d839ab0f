/**
 * Limits of a call, the last parameter of every method of the contract. When absent, the call has no limit.
 *
 * A call that ends because of `signal` rejects with `Aborted`, one that ends because of `timeoutMs` with
 * `DeadlineExceeded`. In both cases the started operation may still complete; the lists contain its result.
 */
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Timeout in milliseconds from the start of the call. */
  readonly timeoutMs?: number;
}
