import type { Readable, Writable } from 'node:stream';
import { type ProcessStreams, RuntimeError, type StreamRequest } from '@keelson/container-runtime';
import type { RemoteSession, SessionEnd } from './remote-session.ts';

/** What a process that was let go of counts as: one whose terminal has gone. */
const letGoCode = 129;

/**
 * The streams of a session as the contract has them. `whenTold` makes the exit code out of what the server said; a
 * session that ends without a word, and was not let go, is `Unavailable`.
 */
export function toProcessStreams(
  session: RemoteSession,
  request: StreamRequest,
  whenTold: (end: SessionEnd) => Promise<{ readonly exitCode: number } | undefined>,
): ProcessStreams {
  const { stdin, stdout, stderr } = session;
  let letGo: () => void = () => {};
  const left = new Promise<{ exitCode: number }>((resolve) => {
    letGo = () => resolve({ exitCode: letGoCode });
  });
  const told = session.end.then(async (end) => {
    const answer = await whenTold(end);
    if (answer === undefined) throw new RuntimeError('Unavailable', 'the streaming server closed the connection');
    return answer;
  });
  const ended = Promise.race([left, told]);
  // Whoever does not ask for the end is not troubled by it.
  ended.catch(() => {});
  const close = () => {
    letGo();
    for (const stream of [stdin, stdout, stderr]) stream?.destroy();
    session.close();
  };
  // To destroy all of them before their ends is to let go.
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
