/** Who asks. */
export interface UserInfo {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** What every operation on the API knows about its caller. Made once per request and passed inward. */
export interface RequestContext {
  readonly user: UserInfo;
  /** Identifies the request in logs and audit. */
  readonly requestId: string;
  /** Verbatim User-Agent, '' in process. */
  readonly userAgent: string;
  /** Aborted when the caller is gone or the deadline has passed. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Checks that the caller may also use another verb on the object that the request names, such as `create` where a PUT
   * creates it. Absent: the caller may do everything. Throws a StatusError (403).
   */
  readonly authorize?: ((verb: string) => void | Promise<void>) | undefined;
  /** Remarks sent to the client with the answer. */
  readonly warn: (text: string) => void;
}

/** The user of code that runs inside the server and may do everything. */
export const systemUser: UserInfo = { name: 'system:apiserver', groups: ['system:masters'] };

/** Context for calls that no request caused. */
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
