import type { ListMeta } from './types.ts';

/** Machine-readable reason of a failed request: see docs/reference/api-rules.md#failures. */
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
