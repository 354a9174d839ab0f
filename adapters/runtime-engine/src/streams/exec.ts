import { PassThrough } from 'node:stream';
import {
  type ContainerId,
  type ExecRequest,
  type ExecSyncRequest,
  type ExecSyncResult,
  type ProcessStreams,
  RuntimeError,
} from '@keelson/container-runtime';
import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core/runtime';
import type { EngineHttp } from '../api/engine-http.ts';
import { ExecSession } from './exec-session.ts';
import { splitFrames } from './frames.ts';
import { writeTo } from './write-to.ts';

const defaultMaxOutputBytes = 16 * 1024 * 1024;

/** Runs a command and collects its output. @throws `NotFound`, `InvalidState`, `DeadlineExceeded` */
export async function execCollected(
  http: EngineHttp,
  clock: Clock,
  id: ContainerId,
  request: ExecSyncRequest,
  signal: AbortSignal | undefined,
): Promise<ExecSyncResult> {
  const { command, execTimeoutMs, maxOutputBytes = defaultMaxOutputBytes } = request;
  const session = await ExecSession.start(http, clock, id, { ...streams, command }, signal);
  const outputs = { stdout: new BoundedOutput(maxOutputBytes), stderr: new BoundedOutput(maxOutputBytes) };
  const read = splitFrames(session.socket, false, (stream, data) => outputs[stream].add(data));
  const done = session.ended(read).then((exitCode) => ({
    ...{ exitCode, stdout: outputs.stdout.bytes(), stderr: outputs.stderr.bytes() },
  }));
  const giveUp = async (error: RuntimeError): Promise<never> => {
    await session.kill();
    session.socket.destroy();
    throw error;
  };
  const limits: Promise<never>[] = [];
  const cancels: (() => void)[] = [];
  const limit = (arm: (fire: (error: RuntimeError) => void) => () => void) => {
    limits.push(
      new Promise<RuntimeError>((resolve) => {
        cancels.push(arm(resolve));
      }).then(giveUp),
    );
  };
  if (execTimeoutMs !== undefined) {
    const late = new RuntimeError('DeadlineExceeded', `the command did not end within ${execTimeoutMs} ms`);
    limit((fire) => clock.after(execTimeoutMs, () => fire(late)));
  }
  if (signal !== undefined) {
    limit((fire) => {
      const onAbort = () => fire(new RuntimeError('Aborted', 'the caller gave up', { cause: signal.reason }));
      addAbortListener(signal, onAbort);
      if (signal.aborted) onAbort();
      return () => removeAbortListener(signal, onAbort);
    });
  }
  try {
    return await Promise.race([done, ...limits]);
  } finally {
    for (const cancel of cancels) cancel();
  }
}

const streams = { stdin: false, stdout: true, stderr: true, tty: false };

/** Runs a command and returns its streams; `close` kills the command. */
export async function execStreams(
  http: EngineHttp,
  clock: Clock,
  id: ContainerId,
  request: ExecRequest,
  signal: AbortSignal | undefined,
): Promise<ProcessStreams> {
  const session = await ExecSession.start(http, clock, id, request, signal);
  const { socket } = session;
  const stdout = request.stdout ? new PassThrough() : undefined;
  const stderr = request.stderr && !request.tty ? new PassThrough() : undefined;
  const read = splitFrames(socket, request.tty, (stream, data) => writeTo(stream === 'stdout' ? stdout : stderr, data));
  const closing = new AbortController();
  const closed = new Promise<void>((resolve) => closing.signal.addEventListener('abort', () => resolve()));
  const ended = session.ended(Promise.race([read, closed])).then((exitCode) => {
    stdout?.end();
    stderr?.end();
    return { exitCode };
  });
  return {
    ...(request.stdin && { stdin: socket }),
    ...(stdout && { stdout }),
    ...(stderr && { stderr }),
    ...(request.tty && { resize: ({ width, height }) => void session.resize(width, height).catch(() => {}) }),
    ended,
    close: () => {
      if (closing.signal.aborted) return;
      closing.abort();
      void session.kill().finally(() => socket.destroy());
    },
  };
}

/** Collects at most `maxBytes` bytes and discards the rest. */
class BoundedOutput {
  readonly #chunks: Buffer[] = [];
  #remainingBytes: number;

  constructor(maxBytes: number) {
    this.#remainingBytes = maxBytes;
  }

  add(data: Buffer): undefined {
    if (this.#remainingBytes === 0) return;
    const kept = data.subarray(0, this.#remainingBytes);
    this.#remainingBytes -= kept.length;
    this.#chunks.push(Buffer.from(kept));
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}
