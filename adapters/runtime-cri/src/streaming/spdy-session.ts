import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { StreamRequest } from '@keelson/container-runtime';
import type { PinnedTls } from '../connection/cri-connection.ts';
import { parseSessionEnd, type RemoteSession, type SessionEnd } from './remote-session.ts';
import { openSpdy } from './spdy-connection.ts';

const protocol = 'v4.channel.k8s.io';

/**
 * Opens a session at `url` by SPDY, which can close the input separately, unlike the WebSocket protocols before v5.
 * @throws UpgradeRefused, Error
 */
export async function openSpdySession(
  url: string,
  request: StreamRequest,
  signal: AbortSignal | undefined,
  tls?: PinnedTls,
): Promise<RemoteSession> {
  const connection = await openSpdy(url, protocol, signal, tls);
  // The server starts the command when all requested streams are open.
  const error = connection.open({ streamtype: 'error' });
  const stdin = request.stdin ? connection.open({ streamtype: 'stdin' }) : undefined;
  const stdout = request.stdout ? connection.open({ streamtype: 'stdout' }) : undefined;
  const stderr = request.stderr ? connection.open({ streamtype: 'stderr' }) : undefined;
  const resize = request.tty ? connection.open({ streamtype: 'resize' }) : undefined;
  for (const stream of [error, stdin, stdout, stderr, resize]) stream?.on('error', () => {});
  stdin?.resume();
  resize?.resume();
  error.end();
  stdout?.end();
  stderr?.end();
  return {
    ...(stdin && { stdin: stdin as Writable }),
    ...(stdout && { stdout: stdout as Readable }),
    ...(stderr && { stderr: stderr as Readable }),
    resize: ({ width, height }) => resize?.write(`${JSON.stringify({ Width: width, Height: height })}\n`),
    end: readSessionEnd(error),
    close: () => connection.close(),
  };
}

/** Reads the result of a session. Servers also report success, so an empty result means an interrupted connection. */
async function readSessionEnd(error: Readable): Promise<SessionEnd> {
  const status = await text(error).catch(() => '');
  return status === '' ? undefined : parseSessionEnd(status);
}
