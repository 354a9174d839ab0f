import { cutText } from '../meta/cut-text.ts';
import type { FieldError } from '../meta/field-error.ts';
import { maxListedErrors } from '../meta/field-error.ts';
import { type Status, type StatusCause, type StatusDetails, StatusReason } from '../meta/status.ts';

const brand = Symbol.for('keelson.StatusError');

/** What a resource is called in messages and details: `deployments.apps`. */
export interface QualifiedResource {
  readonly group: string;
  /** Lower-case plural, with `/subresource` where one is meant. */
  readonly resource: string;
}

/** An error that a client receives, with the complete {@link Status} of the answer. */
export class StatusError extends Error {
  readonly status: Status;
  readonly [brand] = true;

  constructor(status: Status, cause?: unknown) {
    super(status.message ?? status.reason ?? 'unknown failure', cause === undefined ? undefined : { cause });
    this.name = 'StatusError';
    this.status = status;
  }

  /** HTTP status code. */
  get code(): number {
    return this.status.code ?? 500;
  }

  get reason(): StatusReason {
    return this.status.reason ?? StatusReason.Unknown;
  }
}

/** True for a {@link StatusError} (of the given reason, if one is given), also across two copies of this package. */
export function isStatusError(error: unknown, reason?: StatusReason): error is StatusError {
  return (
    typeof error === 'object' &&
    error !== null &&
    brand in error &&
    (reason === undefined || (error as StatusError).reason === reason)
  );
}

/** Maximum number of characters of a Status message, of one cause, and of all causes together. */
const maxMessage = 32 * 1024;
const maxCause = 4 * 1024;
const maxCauses = 24 * 1024;
/** Maximum number of characters of a name in a message: longer than the name of any object. */
const maxName = 512;

/**
 * Messages repeat text of requests, so their length is limited: a response is never many times larger than its request.
 */
function failure(
  code: number,
  reason: StatusReason,
  text: string,
  details?: StatusDetails,
  cause?: unknown,
): StatusError {
  const message = cutText(text, maxMessage);
  return new StatusError(
    {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      reason,
      ...(details ? { details } : {}),
      code,
    },
    cause,
  );
}

function quoted(name: string): string {
  return JSON.stringify(cutText(name, maxName));
}

/** The causes that an answer lists: the first ones, as many as its limits permit. */
function listedCauses(errors: readonly { reason: string; message: string; field: string }[]): StatusCause[] {
  const causes: StatusCause[] = [];
  let size = 0;
  for (const { reason, message, field } of errors.slice(0, maxListedErrors)) {
    const cause = { reason, message: cutText(message, maxCause), field: cutText(field, maxCause) };
    size += cause.message.length + cause.field.length;
    if (size > maxCauses && causes.length > 0) break;
    causes.push(cause);
  }
  return causes;
}

function qualified(res: QualifiedResource): string {
  return res.group === '' ? res.resource : `${res.resource}.${res.group}`;
}

function objectDetails(res: QualifiedResource, name: string): StatusDetails {
  return {
    ...(name === '' ? {} : { name: cutText(name, maxName) }),
    ...(res.group === '' ? {} : { group: res.group }),
    kind: res.resource,
  };
}

const reasonsByCode: Readonly<Record<number, StatusReason>> = {
  400: StatusReason.BadRequest,
  401: StatusReason.Unauthorized,
  403: StatusReason.Forbidden,
  404: StatusReason.NotFound,
  405: StatusReason.MethodNotAllowed,
  406: StatusReason.NotAcceptable,
  409: StatusReason.Conflict,
  410: StatusReason.Gone,
  413: StatusReason.RequestEntityTooLarge,
  415: StatusReason.UnsupportedMediaType,
  422: StatusReason.Invalid,
  429: StatusReason.TooManyRequests,
  500: StatusReason.InternalError,
  503: StatusReason.ServiceUnavailable,
  504: StatusReason.Timeout,
};

/**
 * Builders of every failure, with its exact code, reason, message and details: see
 * docs/reference/api-rules.md#failures.
 */
export const statusErrors = {
  badRequest: (message: string, cause?: unknown) => failure(400, StatusReason.BadRequest, message, undefined, cause),
  /** An error with a given message and the reason that belongs to its code. */
  relayed: (code: number, message: string) => failure(code, reasonsByCode[code] ?? StatusReason.Unknown, message),
  unauthorized: (message = 'Unauthorized') => failure(401, StatusReason.Unauthorized, message),
  forbidden: (res: QualifiedResource, name: string, why: string, causes?: StatusCause[]) =>
    failure(
      403,
      StatusReason.Forbidden,
      `${qualified(res)}${name === '' ? '' : ` ${quoted(name)}`} is forbidden: ${why}`,
      {
        ...objectDetails(res, name),
        ...(causes ? { causes } : {}),
      },
    ),
  notFound: (res: QualifiedResource, name: string) =>
    failure(404, StatusReason.NotFound, `${qualified(res)} ${quoted(name)} not found`, objectDetails(res, name)),
  /** A path that names no resource or subresource of a served group. */
  noSuchResource: () => failure(404, StatusReason.NotFound, 'the server could not find the requested resource', {}),
  methodNotAllowed: (res: QualifiedResource, action: string) =>
    failure(
      405,
      StatusReason.MethodNotAllowed,
      `${action} is not supported on resources of kind ${JSON.stringify(qualified(res))}`,
      objectDetails(res, ''),
    ),
  notAcceptable: (accepted: readonly string[]) =>
    failure(406, StatusReason.NotAcceptable, `only the following media types are accepted: ${accepted.join(', ')}`),
  alreadyExists: (res: QualifiedResource, name: string, beingDeleted = false) =>
    failure(
      409,
      StatusReason.AlreadyExists,
      `${beingDeleted ? 'object is being deleted: ' : ''}${qualified(res)} ${quoted(name)} already exists`,
      objectDetails(res, name),
    ),
  generateNameCollision: (res: QualifiedResource, name: string) =>
    failure(
      409,
      StatusReason.AlreadyExists,
      `${qualified(res)} ${quoted(name)} already exists, the server was not able to generate a unique name for the object`,
      { ...objectDetails(res, name), retryAfterSeconds: 1 },
    ),
  conflict: (res: QualifiedResource, name: string, why: string) =>
    failure(
      409,
      StatusReason.Conflict,
      `Operation cannot be fulfilled on ${qualified(res)} ${quoted(name)}: ${why}`,
      objectDetails(res, name),
    ),
  /** An apply of fields that others own. It has no name and kind, as in Kubernetes. */
  applyConflict: (message: string, causes: readonly { readonly message: string; readonly field: string }[]) =>
    failure(409, StatusReason.Conflict, message, {
      causes: listedCauses(causes.map((cause) => ({ reason: 'FieldManagerConflict', ...cause }))),
    }),
  expired: (message: string, continueToken?: string) => {
    const error = failure(410, StatusReason.Expired, message);
    if (continueToken !== undefined) error.status.metadata.continue = continueToken;
    return error;
  },
  tooLarge: (message: string) => failure(413, StatusReason.RequestEntityTooLarge, message),
  unsupportedMediaType: (accepted: readonly string[]) =>
    failure(
      415,
      StatusReason.UnsupportedMediaType,
      `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
    ),
  /**
   * `kind` is the Kind, e.g. `Pod`; message and causes are derived from the field errors, of which the first hundred
   * are listed. The message has each text once.
   */
  invalid: (gk: { readonly group: string; readonly kind: string }, name: string, errors: readonly FieldError[]) => {
    const causes = listedCauses(errors);
    const texts = [...new Set(causes.map(({ field, message }) => `${field}: ${message}`))];
    if (errors.length > causes.length) texts.push(`and at least ${errors.length - causes.length} more`);
    const joined = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`;
    return failure(
      422,
      StatusReason.Invalid,
      `${gk.group === '' ? gk.kind : `${gk.kind}.${gk.group}`} ${quoted(name)} is invalid: ${joined}`,
      {
        ...(name === '' ? {} : { name: cutText(name, maxName) }),
        ...(gk.group === '' ? {} : { group: gk.group }),
        kind: gk.kind,
        causes,
      },
    );
  },
  /** A patch that does not apply. It has no details, as in Kubernetes: see docs/reference/api-rules.md#patches. */
  unprocessable: (cause?: unknown) =>
    failure(422, StatusReason.Invalid, 'the server rejected our request due to an error in our request', {}, cause),
  tooManyRequests: (message: string, retryAfterSeconds: number, causes?: StatusCause[]) =>
    failure(429, StatusReason.TooManyRequests, message, { ...(causes ? { causes } : {}), retryAfterSeconds }),
  internal: (text: string, cause?: unknown) =>
    failure(
      500,
      StatusReason.InternalError,
      `Internal error occurred: ${text}`,
      { causes: [{ message: cutText(text, maxCause) }] },
      cause,
    ),
  /** `reason`: the explanation for users. */
  serverTimeout: (res: QualifiedResource, action: string, cause?: unknown, reason = '') =>
    failure(
      500,
      StatusReason.ServerTimeout,
      `The ${action} operation against ${qualified(res)} could not be completed at this time, please try again.${reason && ` Cause: ${reason}`}`,
      {
        ...objectDetails(res, ''),
        ...(reason === '' ? {} : { causes: [{ message: cutText(reason, maxCause) }] }),
        retryAfterSeconds: 2,
      },
      cause,
    ),
  /** Another server gave an answer that must not reach the client. */
  badGateway: (message: string) => failure(502, StatusReason.Unknown, message),
  serviceUnavailable: (message: string, cause?: unknown) =>
    failure(503, StatusReason.ServiceUnavailable, message, undefined, cause),
  timeout: (message: string, cause?: unknown) =>
    failure(504, StatusReason.Timeout, `Timeout: ${message}`, undefined, cause),
  tooLargeResourceVersion: (wanted: number, current: number) =>
    failure(504, StatusReason.Timeout, `Timeout: Too large resource version: ${wanted}, current: ${current}`, {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    }),
} as const;
