import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ProcessStreams } from '@keelson/container-runtime';
import type { ProcessEnd, RemoteProcess } from './remote-process.ts';

/** How a process is begun, and what is said of its end. */
export interface ProcessTask {
  readonly begin: () => Promise<ProcessStreams>;
  readonly endOf: (exitCode: number) => ProcessEnd;
  /** What could not be done when it fails. */
  readonly failure: string;
}

/**
 * Begins a process, connects it with its caller until it ends, and tells how it ended. A caller that goes away ends a
 * command, and leaves a container that it was attached to.
 */
export async function serveProcess(caller: RemoteProcess, task: ProcessTask): Promise<void> {
  const onFailure = (error: unknown): ProcessEnd => ({ problem: `${task.failure}: ${messageOf(error)}` });
  await caller.finish(await connect(caller, task).catch(onFailure));
}

async function connect(caller: RemoteProcess, { begin, endOf }: ProcessTask): Promise<ProcessEnd> {
  const streams = await begin();
  // Also when the caller went away while it began.
  void caller.closed.then(() => streams.close());
  caller.onResize((size) => streams.resize?.(size));
  const outputs = [copy(streams.stdout, caller.stdout), copy(streams.stderr, caller.stderr)];
  feed(caller.stdin, streams.stdin);
  try {
    const { exitCode } = await streams.ended;
    await Promise.all(outputs);
    return endOf(exitCode);
  } finally {
    streams.close();
  }
}

/**
 * Resolves when all output was handed over, at the caller's pace, or can no longer be. The caller's end of it stays
 * open: the oldest callers do not wait for how it ended once all output has.
 */
async function copy(output: Readable | undefined, target: Writable | undefined): Promise<void> {
  if (output === undefined || target === undefined) return;
  try {
    await pipeline(output, target, { end: false });
    // Nothing, behind all that was written.
    await new Promise((resolve) => target.write(Buffer.alloc(0), resolve));
  } catch {
    // The caller reads it no more.
  }
}

function feed(input: Readable | undefined, target: Writable | undefined): void {
  if (input === undefined) return;
  // What nobody reads must not hold up what comes behind it.
  const drop = () => {
    if (target !== undefined) input.unpipe(target);
    input.resume();
  };
  if (target === undefined) {
    drop();
    return;
  }
  target.on('error', drop);
  target.on('close', drop);
  // Also when the caller resets it, instead of ending it.
  input.on('close', () => target.end());
  input.pipe(target);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
