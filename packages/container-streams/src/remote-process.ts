import type { Readable, Writable } from 'node:stream';
import type { TerminalSize } from '@keelson/container-runtime';

/** Numbers of the protocols of Kubernetes for commands in containers. */
export type ProtocolVersion = 1 | 2 | 3 | 4 | 5;

/** How a command ended, or why there was none. */
export type ProcessEnd = { readonly exitCode: number } | { readonly problem: string };

/** A caller's ends of a process, whichever protocol carries them. They are there for what was asked for. */
export interface RemoteProcess {
  readonly stdin?: Readable;
  readonly stdout?: Writable;
  readonly stderr?: Writable;
  /** Calls back with each size that the caller's terminal takes. */
  onResize(take: (size: TerminalSize) => void): void;
  /** Resolves when the caller has gone, or was let go. */
  readonly closed: Promise<void>;
  /** Says how it ended, after all output, and ends the connection. */
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
 * What goes into the error channel at the end: a Status since version 4, before that a text, and nothing when all went
 * well.
 */
export function endMessage(version: ProtocolVersion, end: ProcessEnd): string {
  if (version >= 4) return JSON.stringify(statusOf(end));
  if ('problem' in end) return end.problem;
  return end.exitCode === 0 ? '' : nonZero(end.exitCode);
}
