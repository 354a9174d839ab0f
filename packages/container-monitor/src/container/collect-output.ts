import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import { PassThrough, type Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { type ExecSyncRequest, type ExecSyncResult, RuntimeError } from '@keelson/container-runtime';
import { addAbortListener, removeAbortListener } from '@keelson/core/runtime';

const defaultMaxOutputBytes = 16 * 1024 * 1024;
/** Maximum wait for the end of the output after the command has ended. Child processes may keep its pipes open. */
const drainMs = 200;

/** The exit code of a command; 128 + signal number when a signal ended it. */
export function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number {
  if (code !== null) return code;
  return 128 + (signal === null ? 0 : constants.signals[signal]);
}

/** Exit code of a child of this process, once it has ended. */
export function endOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.on('error', (error) => reject(new RuntimeError('StartFailed', error.message, { cause: error })));
    child.on('exit', (code, killedBy) => resolve(exitCodeOf(code, killedBy)));
  });
}

/** Buffers the output of a child for a late reader. Without it, Node discards unread output when the child ends. */
export function keptOutput(output: Readable | null): Readable | null {
  if (output === null) return null;
  const copy = output.pipe(new PassThrough());
  copy.once('close', () => output.destroy());
  return copy;
}

export interface CollectedProcess {
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  /** Resolves with the exit code. When it rejects, {@link collectOutput} rejects with the same error. */
  readonly ended: Promise<number>;
}

export interface CollectOptions {
  readonly signal: AbortSignal | undefined;
  /** Kills the command, on timeout and when the caller cancels. */
  kill(): void;
}

/**
 * Waits for the end of a process and returns its output.
 * @throws `DeadlineExceeded`, `Aborted`
 */
export function collectOutput(
  child: CollectedProcess,
  request: ExecSyncRequest,
  options: CollectOptions,
): Promise<ExecSyncResult> {
  const { execTimeoutMs, maxOutputBytes = defaultMaxOutputBytes } = request;
  const { signal } = options;
  const stdout = collect(child.stdout, maxOutputBytes);
  const stderr = collect(child.stderr, maxOutputBytes);
  return new Promise((resolve, reject) => {
    const cancel = (error: RuntimeError) => {
      finish();
      options.kill();
      child.stdout?.destroy();
      child.stderr?.destroy();
      reject(error);
    };
    const onAbort = () =>
      cancel(new RuntimeError('Aborted', 'execSync: canceled by the caller', { cause: signal?.reason }));
    const late = () =>
      cancel(new RuntimeError('DeadlineExceeded', `the command did not end within ${execTimeoutMs} ms`));
    // Not injected: commands take real time.
    const timer = execTimeoutMs === undefined ? undefined : setTimeout(late, execTimeoutMs);
    const finish = () => {
      clearTimeout(timer);
      removeAbortListener(signal, onAbort);
    };
    addAbortListener(signal, onAbort);
    if (signal?.aborted) onAbort();
    // The command has ended when its process has ended. Its child processes may keep the pipes open.
    child.ended
      .then(async (exitCode) => {
        finish();
        await drained(child);
        resolve({ stdout: stdout(), stderr: stderr(), exitCode });
      })
      .catch((error: unknown) => {
        finish();
        reject(error);
      });
  });
}

/** Waits for the end of the output, at most {@link drainMs}. */
async function drained({ stdout, stderr }: CollectedProcess): Promise<void> {
  const over = new AbortController();
  // Not injected: the pipes of an ended process are read in real time. When the event loop was blocked, the timer is
  // due before the pipes are read; they are read before the immediate.
  const timer = setTimeout(() => setImmediate(() => over.abort()), drainMs);
  const { signal } = over;
  const ended = async (stream: Readable | null) => {
    if (stream === null) return;
    // An error of a pipe ends the output too; what was read before is returned.
    await finished(stream, { signal, writable: false }).catch(() => {});
    stream.destroy();
  };
  await Promise.all([ended(stdout), ended(stderr)]);
  clearTimeout(timer);
}

function collect(stream: NodeJS.ReadableStream | null, limit: number): () => Uint8Array {
  const chunks: Buffer[] = [];
  let length = 0;
  stream?.on('data', (chunk: Buffer) => {
    if (length === limit) return;
    const kept = chunk.subarray(0, limit - length);
    length += kept.length;
    chunks.push(kept);
  });
  return () => Buffer.concat(chunks);
}
