import { DocumentError, isDocumentError } from '../document-error.ts';

/** Bytes that are not the protobuf message they should be. The transport answers 400. Messages never quote content. */
export class ProtobufSyntaxError extends DocumentError {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super('protobuf', 'syntax', message);
    this.name = 'ProtobufSyntaxError';
    if (options.cause !== undefined) this.cause = options.cause;
  }
}

/** True for a {@link ProtobufSyntaxError}, also across two copies of this package. */
export function isProtobufSyntaxError(error: unknown): error is ProtobufSyntaxError {
  return isDocumentError(error) && error.name === 'ProtobufSyntaxError';
}

/**
 * Runs a reader of untrusted bytes; what it fails with becomes a {@link ProtobufSyntaxError} unless it is a {@link
 * DocumentError}.
 */
export function reading<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (isDocumentError(error)) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new ProtobufSyntaxError(`the protobuf message is broken: ${why}`, { cause: error });
  }
}
