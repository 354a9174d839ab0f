/** The identity of a client. */
export interface UserInfo {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** The caller of an operation on the API. Created once per request and passed to every operation. */
export interface RequestContext {
  readonly user: UserInfo;
  /** Identifies the request in logs and audit. */
  readonly requestId: string;
  /** Verbatim User-Agent, '' in process. */
  readonly userAgent: string;
  /** Aborted when the client has disconnected or the deadline has passed. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Checks that the caller may also use another verb on the object that the request names, such as `create` where a PUT
   * creates it. Absent: the caller may do everything. Throws a StatusError (403).
   */
  readonly authorize?: ((verb: string) => void | Promise<void>) | undefined;
  /** Sends a warning to the client with the answer. */
  readonly warn: (text: string) => void;
  /** Adds an annotation to the audit events of the request. Absent: nothing is recorded. */
  readonly annotate?: ((key: string, value: string) => void) | undefined;
  /** Reports milliseconds for which the request waited for admission webhooks. Absent: nothing is measured. */
  readonly waited?: ((ms: number) => void) | undefined;
}

/** The user of code that runs inside the server and may do everything. */
export const systemUser: UserInfo = { name: 'system:apiserver', groups: ['system:masters'] };

/** Context of calls without a request. */
export function internalContext(
  options: { readonly user?: UserInfo; readonly signal?: AbortSignal } = {},
): RequestContext {
  return {
    user: options.user ?? systemUser,
    requestId: '',
    userAgent: '',
    warn: () => {},
    ...(options.signal ? { signal: options.signal } : {}),
  };
}
