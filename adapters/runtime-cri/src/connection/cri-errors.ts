import { Metadata, status } from '@grpc/grpc-js';
import { isRuntimeError, RuntimeError, RuntimeErrorCode } from '@keelson/container-runtime';

interface GrpcError {
  readonly code: number;
  readonly details: string;
  readonly metadata?: unknown;
}

/** Under this name the service of this package tells the code of the contract, of which gRPC has no equal. */
export const codeKey = 'keelson-error-code';

export function isGrpcError(error: unknown): error is GrpcError {
  return typeof (error as GrpcError | undefined)?.code === 'number' && typeof (error as GrpcError).details === 'string';
}

/**
 * Daemons answer with UNKNOWN what they have a code for; these are texts by which it is told apart, those of containerd
 * above all.
 */
const texts: readonly (readonly [RegExp, RuntimeErrorCode])[] = [
  [/server is not initialized yet|transport is closing|connection error/, 'Unavailable'],
  [/is reserved for|is already reserved|name .* is in use/, 'AlreadyExists'],
  [/is not a shared( or slave)? mount|seccomp is not (supported|enabled)|apparmor is not supported/i, 'Unsupported'],
  [/unable to find user|no users found|unable to find group|no groups found/, 'StartFailed'],
  [/image .*: not found|failed to resolve image|image not known|no such image/, 'ImageNotFound'],
  [/is in CONTAINER_\w+ state|is not running|not in created state|is already in \w+ state/, 'InvalidState'],
  [/sandbox .*(not ready|not running)|get sandbox container task/, 'InvalidState'],
  [/timeout .* exceeded|context deadline exceeded/, 'DeadlineExceeded'],
  [/failed to exec in container.*(not found|no such file|permission denied)/s, 'StartFailed'],
];

/** What the code alone says; undefined where it says nothing. */
const codes: ReadonlyMap<number, RuntimeErrorCode> = new Map([
  // A caller who gave up is told before the daemon is: what comes here was cancelled by the daemon itself, on its way
  // out.
  [status.CANCELLED, 'Unavailable'],
  [status.INVALID_ARGUMENT, 'InvalidArgument'],
  [status.DEADLINE_EXCEEDED, 'DeadlineExceeded'],
  [status.NOT_FOUND, 'NotFound'],
  [status.ALREADY_EXISTS, 'AlreadyExists'],
  [status.FAILED_PRECONDITION, 'InvalidState'],
  [status.UNIMPLEMENTED, 'Unsupported'],
  [status.UNAVAILABLE, 'Unavailable'],
]);

/** The one place where a failure of the daemon or of the connection to it becomes a {@link RuntimeError}. */
export function translateCriError(error: unknown): RuntimeError {
  if (isRuntimeError(error)) return error;
  if (!isGrpcError(error))
    return new RuntimeError('Internal', error instanceof Error ? error.message : String(error), { cause: error });
  return new RuntimeError(codeOf(error), error.details, { cause: error });
}

function codeOf({ code, details, metadata }: GrpcError): RuntimeErrorCode {
  const [exact] = metadata instanceof Metadata ? metadata.get(codeKey) : [];
  const known = Object.values(RuntimeErrorCode).find((name) => name === exact);
  if (known !== undefined) return known;
  const plain = codes.get(code);
  if (plain !== undefined) return plain;
  return texts.find(([pattern]) => pattern.test(details))?.[1] ?? 'Internal';
}

/** The same failure under another code. */
export function withCode(error: RuntimeError, code: RuntimeErrorCode): RuntimeError {
  return new RuntimeError(code, error.message, { cause: error.cause ?? error });
}
