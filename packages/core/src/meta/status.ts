import type { ListMeta } from './types.ts';

/**
 * Machine-readable reason of a failed request: see docs/reference/api-rules.md#failures.
 *
 * - `Unknown`: a failure without a reason of its own, for example of a proxied server; the code is that of HTTP.
 * - `BadRequest`: 400; the request cannot be understood: a body that is not valid JSON, YAML or protobuf, a parameter.
 * - `Unauthorized`: 401; the credentials are missing or not accepted.
 * - `Forbidden`: 403; the user may not do this, or admission rejected it; the message names the rule.
 * - `NotFound`: 404; the object, the namespace or the resource does not exist.
 * - `MethodNotAllowed`: 405; the resource does not support this verb.
 * - `NotAcceptable`: 406; none of the media types in `Accept` is available.
 * - `AlreadyExists`: 409; an object of this name exists; a generated name may be requested again.
 * - `Conflict`: 409; the object has changed since it was read, or a precondition failed; read it again and retry.
 * - `Gone`: 410; the object is no longer available.
 * - `Expired`: 410; the requested revision or continue token is no longer in history; list again.
 * - `RequestEntityTooLarge`: 413; the body exceeds the limits of the server, or the object those of the store.
 * - `UnsupportedMediaType`: 415; the media type of the body or of the patch is not supported.
 * - `Invalid`: 422; the object is well-formed but not valid; `details.causes` names each field.
 * - `TooManyRequests`: 429; a limit of requests was reached, or an eviction is not allowed now; retry after the given
 *   time.
 * - `InternalError`: 500; the server failed; its log has the cause, with the `Audit-Id` of the response.
 * - `ServerTimeout`: 500; the store cannot be reached; nothing was changed, and the request may be repeated.
 * - `ServiceUnavailable`: 503; the server is starting, ending or overloaded; repeat the request.
 * - `Timeout`: 504; the request did not end in time; a write may have been applied.
 */
export const StatusReason = {
  Unknown: '',
  BadRequest: 'BadRequest',
  Unauthorized: 'Unauthorized',
  Forbidden: 'Forbidden',
  NotFound: 'NotFound',
  MethodNotAllowed: 'MethodNotAllowed',
  NotAcceptable: 'NotAcceptable',
  AlreadyExists: 'AlreadyExists',
  Conflict: 'Conflict',
  Gone: 'Gone',
  Expired: 'Expired',
  RequestEntityTooLarge: 'RequestEntityTooLarge',
  UnsupportedMediaType: 'UnsupportedMediaType',
  Invalid: 'Invalid',
  TooManyRequests: 'TooManyRequests',
  InternalError: 'InternalError',
  ServerTimeout: 'ServerTimeout',
  ServiceUnavailable: 'ServiceUnavailable',
  Timeout: 'Timeout',
} as const;
export type StatusReason = (typeof StatusReason)[keyof typeof StatusReason];

/** One reason of a failure: the field concerned, and what is wrong with it. */
export interface StatusCause {
  reason?: string;
  message?: string;
  /** JavaScript notation: `spec.ports[0].port`. */
  field?: string;
}

/** What a failure concerns, its causes, and when a retry makes sense. */
export interface StatusDetails {
  name?: string;
  group?: string;
  /** The resource plural in most errors, the Kind in `Invalid`. */
  kind?: string;
  uid?: string;
  causes?: StatusCause[];
  retryAfterSeconds?: number;
}

/** Result of an operation that returns no object; kind `Status` of `v1`. */
export interface Status {
  kind: 'Status';
  apiVersion: 'v1';
  metadata: ListMeta;
  status: 'Success' | 'Failure';
  message?: string;
  reason?: StatusReason;
  details?: StatusDetails;
  code?: number;
}
