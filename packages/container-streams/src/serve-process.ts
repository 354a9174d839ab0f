import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ProcessStreams } from '@keelson/container-runtime';
import type { ProcessEnd, RemoteProcess } from './remote-process.ts';

/** How a process is started, and how its end is reported. */
export interface ProcessTask {
  readonly begin: () => Promise<ProcessStreams>;
  readonly endOf: (exitCode: number) => ProcessEnd;
  /** The prefix of the error message when the start fails. */
  readonly failure: string;
}

/**
 * Starts a process, connects it with its client until it ends, and reports its end. When the client disconnects, an
 * exec session is closed and its command ends; a container with an attached client continues.
 */
export async function serveProcess(caller: RemoteProcess, task: ProcessTask): Promise<void> {
  const onFailure = (error: unknown): ProcessEnd => ({ problem: `${task.failure}: ${messageOf(error)}` });
  await caller.finish(await connect(caller, task).catch(onFailure));
}

async function connect(caller: RemoteProcess, { begin, endOf }: ProcessTask): Promise<ProcessEnd> {
  const streams = await begin();
  // Registered before any wait, because the client may have disconnected during the start.
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
 * Resolves when all output was written to the client, or can no longer be written. The client's stream stays open,
 * because clients of the oldest protocols do not wait for the result once all output streams have ended.
 */
async function copy(output: Readable | undefined, target: Writable | undefined): Promise<void> {
  if (output === undefined || target === undefined) return;
  try {
    await pipeline(output, target, { end: false });
    // An empty write completes after all previous writes.
    await new Promise((resolve) => target.write(Buffer.alloc(0), resolve));
  } catch {
    // The client does not read this stream any more.
  }
}

function feed(input: Readable | undefined, target: Writable | undefined): void {
  if (input === undefined) return;
  // Input that the process does not read is discarded, so that it does not block the connection.
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
  // `close` also occurs when the client resets the stream instead of ending it.
  input.on('close', () => target.end());
  input.pipe(target);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
