import type { Readable, Writable } from 'node:stream';
import type { TerminalSize } from '@keelson/container-runtime';

/** Versions of the Kubernetes protocol for commands in containers. */
export type ProtocolVersion = 1 | 2 | 3 | 4 | 5;

/** How a command ended, or why it was not run. */
export type ProcessEnd = { readonly exitCode: number } | { readonly problem: string };

/** The client's streams of a process, independent of the protocol. Only requested streams are present. */
export interface RemoteProcess {
  readonly stdin?: Readable;
  readonly stdout?: Writable;
  readonly stderr?: Writable;
  /** Calls `resize` with each size of the client's terminal. */
  onResize(resize: (size: TerminalSize) => void): void;
  /** Resolves when the connection is closed, by either side. */
  readonly closed: Promise<void>;
  /** Sends how the command ended, after all output, and closes the connection. */
  finish(end: ProcessEnd): Promise<void>;
}

const nonZero = (exitCode: number) => `command terminated with exit code ${exitCode}`;

function statusOf(end: ProcessEnd): object {
  if ('problem' in end) {
    const message = `Internal error occurred: ${end.problem}`;
    const details = { causes: [{ message: end.problem }] };
    return { metadata: {}, status: 'Failure', message, reason: 'InternalError', details, code: 500 };
  }
  const { exitCode } = end;
  if (exitCode === 0) return { metadata: {}, status: 'Success' };
  const details = { causes: [{ reason: 'ExitCode', message: String(exitCode) }] };
  return { metadata: {}, status: 'Failure', message: nonZero(exitCode), reason: 'NonZeroExitCode', details };
}

/**
 * The last message on the error channel: a Status since version 4; in older versions a text, which is empty on success.
 */
export function endMessage(version: ProtocolVersion, end: ProcessEnd): string {
  if (version >= 4) return JSON.stringify(statusOf(end));
  if ('problem' in end) return end.problem;
  return end.exitCode === 0 ? '' : nonZero(end.exitCode);
}
