import { RuntimeError, type RuntimeErrorCode } from '@keelson/container-runtime';

/** What an engine says when it refuses: Docker gives a message, Podman adds a cause. */
interface Refusal {
  readonly message?: string;
  readonly cause?: string;
}

/** Podman answers 500 to nearly everything; the cause says what it was. */
const causes: Readonly<Record<string, RuntimeErrorCode>> = {
  'that name is already in use': 'AlreadyExists',
  'container state improper': 'InvalidState',
  'no such container': 'NotFound',
  'image not known': 'ImageNotFound',
};

/** The error of an answer with a status of 400 and above. */
export function apiError(status: number, what: string, text: string): RuntimeError {
  const { message = text.trim(), cause = '' } = parse(text);
  return new RuntimeError(codeOf(status, message, cause), `${what}: ${message === '' ? `status ${status}` : message}`);
}

function codeOf(status: number, message: string, cause: string): RuntimeErrorCode {
  const known = causes[cause];
  if (known !== undefined) return known;
  if (status === 404) return /no such image/i.test(message) ? 'ImageNotFound' : 'NotFound';
  if (status === 409) return /already in use/i.test(message) ? 'AlreadyExists' : 'InvalidState';
  if (status === 400) return 'InvalidArgument';
  return 'Internal';
}

function parse(text: string): Refusal {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}

/** The error of a request that got no answer, or only the beginning of one. */
export function connectionError(error: unknown, what: string, signal: AbortSignal | undefined): RuntimeError {
  if (signal?.aborted) return new RuntimeError('Aborted', `${what}: the caller gave up`, { cause: error });
  const reason = error instanceof Error ? error.message : String(error);
  return new RuntimeError('Unavailable', `the container engine does not answer: ${reason}`, { cause: error });
}
