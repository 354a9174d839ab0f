import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import { PassThrough, type Readable } from 'node:stream';
import { type ExecSyncRequest, type ExecSyncResult, RuntimeError } from '@keelson/container-runtime';
import { addAbortListener, removeAbortListener } from '@keelson/core';

const defaultMaxOutputBytes = 16 * 1024 * 1024;
/** What a command left behind may hold its pipes open; its output is waited for no longer than this. */
const drainMs = 200;

/** 128 + number for a command that a signal ended. */
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

/** The output of a child, kept for a reader that comes late: Node discards what is not read yet when the child ends. */
export function keptOutput(output: Readable | null): Readable | null {
  if (output === null) return null;
  const copy = output.pipe(new PassThrough());
  copy.once('close', () => output.destroy());
  return copy;
}

export interface CollectedProcess {
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  /** Its exit code; what it rejects with is the outcome. */
  readonly ended: Promise<number>;
}

export interface CollectOptions {
  readonly signal: AbortSignal | undefined;
  /** Kills what was started, when the time is over or the caller gives up. */
  kill(): void;
}

/**
 * Waits for the end of a process and collects its output.
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
    const giveUp = (error: RuntimeError) => {
      finish();
      options.kill();
      child.stdout?.destroy();
      child.stderr?.destroy();
      reject(error);
    };
    const onAbort = () =>
      giveUp(new RuntimeError('Aborted', 'execSync: the caller gave up', { cause: signal?.reason }));
    const late = () =>
      giveUp(new RuntimeError('DeadlineExceeded', `the command did not end within ${execTimeoutMs} ms`));
    const timer = execTimeoutMs === undefined ? undefined : setTimeout(late, execTimeoutMs);
    const finish = () => {
      clearTimeout(timer);
      removeAbortListener(signal, onAbort);
    };
    addAbortListener(signal, onAbort);
    if (signal?.aborted) onAbort();
    // The end of the process, not that of its output: something the command left behind may hold the pipes, and it is
    // not what was asked for.
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

/** Waits for the end of the output, but no longer than a command's leftovers deserve. */
function drained(child: CollectedProcess): Promise<void> {
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
