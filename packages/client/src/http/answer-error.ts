import {
  type GroupVersionResource,
  isEnvelope,
  parseProtobufBody,
  type Status,
  type StatusDetails,
  StatusError,
  StatusReason,
  statusSchema,
} from '@keelson/core';

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
  400: { reason: StatusReason.BadRequest, message: 'the server could not make sense of the request' },
  401: { reason: StatusReason.Unauthorized, message: 'the server has asked for the client to provide credentials' },
  403: { reason: StatusReason.Forbidden, message: 'the server does not allow this request' },
  404: { reason: StatusReason.NotFound, message: 'the server could not find the requested resource' },
  405: {
    reason: StatusReason.MethodNotAllowed,
    message: 'the server does not know this method for the requested resource',
  },
  406: {
    reason: StatusReason.NotAcceptable,
    message: 'the server has no form of the answer that this client can read',
  },
  409: { reason: StatusReason.Conflict, message: 'the server reported a conflict' },
  410: { reason: StatusReason.Gone, message: 'the server no longer has what was asked for' },
  413: { reason: StatusReason.RequestEntityTooLarge, message: 'the server finds the request too large' },
  415: { reason: StatusReason.UnsupportedMediaType, message: 'the server cannot read the form of the request' },
  422: { reason: StatusReason.Invalid, message: 'the server rejected our request due to an error in our request' },
  429: { reason: StatusReason.TooManyRequests, message: 'the server has too much to do and asks to try later' },
  503: { reason: StatusReason.ServiceUnavailable, message: 'the server cannot handle the request at this time' },
  504: {
    reason: StatusReason.Timeout,
    message: 'the server gave no answer in time, but may still be working on the request',
  },
};

const shownBytes = 1024;

function meaningOf(code: number, method: string): Meaning {
  if (code === 409 && method === 'POST') {
    return { reason: StatusReason.AlreadyExists, message: 'the server says that the object exists already' };
  }
  const known = meanings[code];
  if (known !== undefined) return known;
  if (code >= 500)
    return { reason: StatusReason.InternalError, message: 'an error on the server made the request fail' };
  return { reason: StatusReason.Unknown, message: `the server answered with code ${code} and nothing else` };
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
  const where = resource && (resource.group === '' ? resource.resource : `${resource.resource}.${resource.group}`);
  const about = [subject.method.toLowerCase(), where, name]
    .filter((word) => word !== undefined && word !== '')
    .join(' ');
  const text = body.toString('utf8', 0, shownBytes).trim();
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

/** True when the requested resourceVersion is ahead of the server: see docs/reference/api-rules.md#future-revisions. */
export function isTooLargeResourceVersion(error: unknown): boolean {
  if (typeof error !== 'object' || error === null || !('status' in error)) return false;
  const { details } = error.status as Status;
  return details?.causes?.some((cause) => cause.reason === 'ResourceVersionTooLarge') ?? false;
}
