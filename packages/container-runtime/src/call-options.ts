/**
 * How long a caller is willing to wait. Every call of the contract takes it last; leaving it out means for ever.
 *
 * A call that ends because of `signal` rejects with `Aborted`, one that ends because of `timeoutMs` with
 * `DeadlineExceeded`; in both cases what it had begun may still happen, and the caller finds out by listing.
 */
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Milliseconds from the call on. */
  readonly timeoutMs?: number;
}
