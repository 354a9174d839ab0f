/** Attributes of a span: closed sets and names, never contents of objects. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** What a span is about, when it begins. */
export interface SpanOptions {
  /** From a closed set, such as `GET /api/v1/pods` without names. */
  readonly name: string;
  /** `server` for requests of clients, `client` for calls to other processes. Default `internal`. */
  readonly kind?: 'internal' | 'server' | 'client';
  readonly attributes?: SpanAttributes;
  /** Headers of a request with the trace context of its client (W3C). Default: the span that is active. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** A span that has begun. */
export interface ActiveSpan {
  set(attributes: SpanAttributes): void;
  /** Marks the span as failed without an exception. */
  fail(message: string): void;
}

/**
 * Records spans. Parts of the plane are connected to it only when it is given, so that nothing is paid without it.
 *
 * @experimental
 */
export interface Tracing {
  /**
   * Runs an operation in a span, which is active during the operation and ends with it, or with its promise. Errors of
   * the operation mark the span and are thrown.
   */
  span<T>(options: SpanOptions, operation: (span: ActiveSpan) => T): T;
  /** Headers that carry the active span to another process (W3C trace context); none without one. */
  headers(): Readonly<Record<string, string>>;
}
