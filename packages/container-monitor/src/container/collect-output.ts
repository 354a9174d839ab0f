import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import { type ExecSyncRequest, type ExecSyncResult, RuntimeError } from '@keelson/container-runtime';

const defaultMaxOutputBytes = 16 * 1024 * 1024;
/** What a command left behind may hold its pipes open; its output is waited for no longer than this. */
const drainMs = 200;

/** 128 + number for a command that a signal ended. */
export function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number {
  if (code !== null) return code;
  return 128 + (signal === null ? 0 : constants.signals[signal]);
}

export interface CollectOptions {
  readonly signal: AbortSignal | undefined;
  /** Kills what was started, when the time is over or the caller gives up. */
  kill(): void;
  /** Exit code of the command when the child has exited so. What it throws is the outcome. */
  exitCode(code: number | null, signal: NodeJS.Signals | null): number | Promise<number>;
}

/**
 * Waits for the end of a child with piped output, and collects that.
 * @throws `DeadlineExceeded`, `Aborted`, `StartFailed`
 */
export async function collectOutput(
  child: ChildProcess,
  request: ExecSyncRequest,
  options: CollectOptions,
): Promise<ExecSyncResult> {
  const { execTimeoutMs, maxOutputBytes = defaultMaxOutputBytes } = request;
  const { signal } = options;
  const stdout = collect(child.stdout, maxOutputBytes);
  const stderr = collect(child.stderr, maxOutputBytes);
  return new Promise((resolve, reject) => {
    const giveUp = (error: RuntimeError) => {
      finish();
      options.kill();
      child.stdout?.destroy();
      child.stderr?.destroy();
      reject(error);
    };
    const onAbort = () => giveUp(new RuntimeError('Aborted', 'execSync: the caller gave up', { cause: signal?.reason }));
    const late = () => giveUp(new RuntimeError('DeadlineExceeded', `the command did not end within ${execTimeoutMs} ms`));
    const timer = execTimeoutMs === undefined ? undefined : setTimeout(late, execTimeoutMs);
    const finish = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted) return onAbort();
    child.on('error', (error) => giveUp(new RuntimeError('StartFailed', error.message, { cause: error })));
    // Not `close`: something the command left behind may hold the pipes, and it is not what was asked for.
    child.on('exit', (code, killedBy) => {
      finish();
      setImmediate(() => {
        drained(child)
          .then(() => options.exitCode(code, killedBy))
          .then((exitCode) => resolve({ stdout: stdout(), stderr: stderr(), exitCode }))
          .catch(reject);
      });
    });
  });
}

/** Waits for the end of the output, but no longer than a command's leftovers deserve. */
function drained(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      child.stdout?.destroy();
      child.stderr?.destroy();
      resolve();
    };
    const timer = setTimeout(done, drainMs);
    let open = 2;
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null || stream.readableEnded || stream.destroyed) open -= 1;
      else stream.once('close', () => --open === 0 && done());
    }
    if (open === 0) done();
  });
}

function collect(stream: NodeJS.ReadableStream | null, limit: number): () => Uint8Array {
  const chunks: Buffer[] = [];
  let length = 0;
  stream?.on('data', (chunk: Buffer) => {
    const kept = chunk.subarray(0, Math.max(0, limit - length));
    length += kept.length;
    if (kept.length > 0) chunks.push(kept);
  });
  return () => Buffer.concat(chunks);
}
