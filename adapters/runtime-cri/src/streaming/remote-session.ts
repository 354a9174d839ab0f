import type { Readable, Writable } from 'node:stream';
import type { TerminalSize } from '@keelson/container-runtime';

/** The result of a session as the streaming server reported it; undefined when it reported none. */
export type SessionEnd = { readonly exitCode: number } | undefined;

/** The streams of a session with a streaming server, independent of the transport. */
export interface RemoteSession {
  readonly stdin?: Writable;
  readonly stdout?: Readable;
  readonly stderr?: Readable;
  resize(size: TerminalSize): void;
  /** Resolves when the server has reported the result or closed the connection without one. */
  readonly end: Promise<SessionEnd>;
  close(): void;
}

/** Exit codes of a shell for a command that does not exist and for a command that cannot be executed. */
const notFoundCode = 127;
const notExecutableCode = 126;

/** Parses the result at the end of a session, which is a Kubernetes Status in JSON. */
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
