import type { Readable, Writable } from 'node:stream';
import { type ProcessStreams, RuntimeError, type StreamRequest } from '@keelson/container-runtime';
import type { RemoteSession, SessionEnd } from './remote-session.ts';

/** Exit code after `close`: that of a process ended by SIGHUP, because its terminal was closed. */
const closedExitCode = 129;

/**
 * Converts a session to `ProcessStreams`. `exitOf` derives the exit code from the result that the server reported. A
 * session that ends without a result, and was not closed by the caller, rejects with `Unavailable`.
 */
export function toProcessStreams(
  session: RemoteSession,
  request: StreamRequest,
  exitOf: (end: SessionEnd) => Promise<{ readonly exitCode: number } | undefined>,
): ProcessStreams {
  const { stdin, stdout, stderr } = session;
  let markClosed: () => void = () => {};
  const closed = new Promise<{ exitCode: number }>((resolve) => {
    markClosed = () => resolve({ exitCode: closedExitCode });
  });
  const reported = session.end.then(async (end) => {
    const exit = await exitOf(end);
    if (exit === undefined) throw new RuntimeError('Unavailable', 'the streaming server closed the connection');
    return exit;
  });
  const ended = Promise.race([closed, reported]);
  // Prevents an unhandled rejection when the caller does not await the end.
  ended.catch(() => {});
  const close = () => {
    markClosed();
    for (const stream of [stdin, stdout, stderr]) stream?.destroy();
    session.close();
  };
  // Destroying all streams before their ends closes the session.
  const unfinished = new Set([stdin, stdout, stderr].filter((stream) => stream !== undefined));
  let cutShort = unfinished.size > 0;
  for (const stream of unfinished) {
    stream.on('error', () => {});
    stream.once('close', () => {
      unfinished.delete(stream);
      cutShort &&= isCutShort(stream, stream === stdin);
      if (unfinished.size === 0 && cutShort) close();
    });
  }
  return {
    ...(stdin && { stdin }),
    ...(stdout && { stdout }),
    ...(stderr && { stderr }),
    ...(request.tty && { resize: (size) => session.resize(size) }),
    ended,
    close,
  };
}

function isCutShort(stream: Readable | Writable, isInput: boolean): boolean {
  return isInput ? !(stream as Writable).writableFinished : !(stream as Readable).readableEnded;
}
