import { RuntimeError, type RuntimeErrorCode } from '@keelson/container-runtime';

/** Body of an error response: Docker sends a message, Podman adds a cause. */
interface ErrorBody {
  readonly message?: string;
  readonly cause?: string;
}

/** Podman responds with 500 to nearly all errors; the cause identifies the error. */
const causes: Readonly<Record<string, RuntimeErrorCode>> = {
  'that name is already in use': 'AlreadyExists',
  'container state improper': 'InvalidState',
  'no such container': 'NotFound',
  'image not known': 'ImageNotFound',
};

/** Converts a response with a status of 400 or above to an error. */
export function apiError(status: number, what: string, text: string): RuntimeError {
  const { message = text.trim(), cause = '' } = parse(text);
  return new RuntimeError(codeOf(status, message, cause), `${what}: ${message === '' ? `status ${status}` : message}`);
}

function codeOf(status: number, message: string, cause: string): RuntimeErrorCode {
  const codeOfCause = causes[cause];
  if (codeOfCause !== undefined) return codeOfCause;
  if (status === 404) return /no such image/i.test(message) ? 'ImageNotFound' : 'NotFound';
  if (status === 409) return /already in use/i.test(message) ? 'AlreadyExists' : 'InvalidState';
  if (status === 400) return 'InvalidArgument';
  return 'Internal';
}

function parse(text: string): ErrorBody {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}

/** Converts the failure of a request without a complete response to an error. */
export function connectionError(error: unknown, what: string, signal: AbortSignal | undefined): RuntimeError {
  if (signal?.aborted) return new RuntimeError('Aborted', `${what}: the caller gave up`, { cause: error });
  const reason = error instanceof Error ? error.message : String(error);
  return new RuntimeError('Unavailable', `the container engine does not respond: ${reason}`, { cause: error });
}
