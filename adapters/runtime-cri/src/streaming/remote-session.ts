import type { Readable, Writable } from 'node:stream';
import type { TerminalSize } from '@keelson/container-runtime';

/**
 * How a command or the watching of a container ended, as the streaming server told it; undefined when it told nothing.
 */
export type SessionEnd = { readonly exitCode: number } | undefined;

/** The ends of a stream from a streaming server, whichever protocol carries them. */
export interface RemoteSession {
  readonly stdin?: Writable;
  readonly stdout?: Readable;
  readonly stderr?: Readable;
  resize(size: TerminalSize): void;
  /** Resolves when the server has said how it ended, or has closed the connection without a word. */
  readonly end: Promise<SessionEnd>;
  close(): void;
}

/** What a shell says of a command that is not there, and of one that could not be run. */
const notFoundCode = 127;
const notExecutableCode = 126;

/** The status that comes at the end of a session: a Kubernetes Status in JSON. */
export function parseSessionEnd(json: string): SessionEnd {
  const text = json.trim();
  if (text === '') return { exitCode: 0 };
  let status: { status?: string; message?: string; details?: { causes?: { reason?: string; message?: string }[] } };
  try {
    status = JSON.parse(text);
  } catch {
    return { exitCode: notExecutableCode };
  }
  if (status.status === 'Success') return { exitCode: 0 };
  const code = status.details?.causes?.find(({ reason }) => reason === 'ExitCode')?.message;
  if (code !== undefined && /^-?\d+$/.test(code)) return { exitCode: Number(code) };
  return { exitCode: /not found|no such file/i.test(status.message ?? '') ? notFoundCode : notExecutableCode };
}
