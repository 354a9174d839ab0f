import {
  type GroupVersionResource,
  isStatusError,
  type Status,
  type StatusDetails,
  StatusError,
  StatusReason,
} from '@keelson/core';
import { isEnvelope, parseProtobufBody, statusSchema } from '@keelson/core/internal';

/** The subject of a request, for errors without a Status. */
export interface RequestSubject {
  readonly method: string;
  readonly resource?: GroupVersionResource;
  readonly name?: string;
}

/** A failed response. */
export interface FailedAnswer {
  readonly code: number;
  readonly body: Buffer;
  /** Value of `Retry-After` in seconds. */
  readonly retryAfterSeconds?: number;
}

interface Meaning {
  readonly reason: StatusReason;
  readonly message: string;
}

const meanings: Readonly<Record<number, Meaning>> = {
  400: { reason: StatusReason.BadRequest, message: 'the server rejected our request for an unknown reason' },
  401: { reason: StatusReason.Unauthorized, message: 'the server has asked for the client to provide credentials' },
  403: { reason: StatusReason.Forbidden, message: 'the server does not allow access to the requested resource' },
  404: { reason: StatusReason.NotFound, message: 'the server could not find the requested resource' },
  405: {
    reason: StatusReason.MethodNotAllowed,
    message: 'the server does not allow this method on the requested resource',
  },
  406: {
    reason: StatusReason.NotAcceptable,
    message: 'the server was unable to respond with a content type that the client supports',
  },
  409: { reason: StatusReason.Conflict, message: 'the server reported a conflict' },
  410: { reason: StatusReason.Gone, message: 'the requested data is no longer available on the server' },
  413: { reason: StatusReason.RequestEntityTooLarge, message: 'the request is too large for the server' },
  415: { reason: StatusReason.UnsupportedMediaType, message: 'the body of the request was in an unknown format' },
  422: { reason: StatusReason.Invalid, message: 'the server rejected our request due to an error in our request' },
  429: {
    reason: StatusReason.TooManyRequests,
    message: 'the server has received too many requests and has asked us to try again later',
  },
  503: { reason: StatusReason.ServiceUnavailable, message: 'the server is currently unable to handle the request' },
  504: {
    reason: StatusReason.Timeout,
    message: 'the server was unable to return a response in the time allotted, but may still be processing the request',
  },
};

/** Limit for the part of a body that is included in an error. */
const maxCauseBytes = 1024;

function meaningOf(code: number, method: string): Meaning {
  if (code === 409 && method === 'POST') {
    return { reason: StatusReason.AlreadyExists, message: 'the server reported a conflict' };
  }
  const meaning = meanings[code];
  if (meaning !== undefined) return meaning;
  if (code >= 500)
    return {
      reason: StatusReason.InternalError,
      message: 'an error on the server has prevented the request from succeeding',
    };
  return {
    reason: StatusReason.Unknown,
    message: `the server responded with the status code ${code} but did not return more information`,
  };
}

function isStatus(value: unknown): value is Status {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'Status';
}

/** The Status in a body; undefined for other bodies. */
export function statusOf(body: Buffer): Status | undefined {
  try {
    const value: unknown = isEnvelope(body)
      ? parseProtobufBody(body, { kind: 'Status', schema: statusSchema })
      : JSON.parse(body.toString('utf8'));
    return isStatus(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The error of a failed response: the Status of the server, or one derived from the HTTP code with the beginning of the
 * body as its cause.
 */
export function answerError(answer: FailedAnswer, subject: RequestSubject): StatusError {
  const { code, body, retryAfterSeconds } = answer;
  const status = statusOf(body);
  if (status !== undefined && status.status !== 'Success') {
    return new StatusError({ ...status, metadata: status.metadata ?? {}, code: status.code ?? code });
  }
  const { reason, message } = meaningOf(code, subject.method);
  const { resource, name } = subject;
  const resourceName =
    resource && (resource.group === '' ? resource.resource : `${resource.resource}.${resource.group}`);
  const about = [subject.method.toLowerCase(), resourceName, name]
    .filter((part) => part !== undefined && part !== '')
    .join(' ');
  const text = body.toString('utf8', 0, maxCauseBytes).trim();
  const details: StatusDetails = {
    ...(name === undefined ? {} : { name }),
    ...(resource === undefined || resource.group === '' ? {} : { group: resource.group }),
    ...(resource === undefined ? {} : { kind: resource.resource }),
    ...(text === '' ? {} : { causes: [{ reason: 'UnexpectedServerResponse', message: text }] }),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  };
  return new StatusError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: `${message} (${about})`,
    reason,
    details,
    code,
  });
}

/** For `catch`: the result is undefined when the object does not exist; other errors are thrown again. */
export function missingIsUndefined(error: unknown): undefined {
  if (!isStatusError(error, StatusReason.NotFound)) throw error;
}

/** True when the requested resourceVersion is ahead of the server: see docs/reference/api-rules.md#future-revisions. */
export function isTooLargeResourceVersion(error: unknown): boolean {
  if (typeof error !== 'object' || error === null || !('status' in error)) return false;
  const { details } = error.status as Status;
  return details?.causes?.some((cause) => cause.reason === 'ResourceVersionTooLarge') ?? false;
}
