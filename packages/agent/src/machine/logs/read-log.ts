import { pause } from '@keelson/client';
import type { Clock } from '@keelson/core';
import type { LogRequest } from '../../base/contracts/pod-queries.ts';
import { type LogFile, openAfter, openLog, openNewest, rotatedBefore } from './log-files.ts';
import { LogTail } from './log-tail.ts';
import { LogText } from './log-text.ts';

const chunkBytes = 64 * 1024;
const followMs = 200;

/** Absent fields select everything, without timestamps. */
export type LogSelection = Partial<Pick<LogRequest, 'timestamps' | 'tailLines' | 'sinceMs' | 'limitBytes'>>;

/** How a log is read on while its container writes. */
export interface LogFollow {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** True once nothing is appended any more. */
  readonly ended: () => boolean;
}

/**
 * The text of a container's log that a request asks for, from the rotated files and the one that is appended to. A
 * request that does not follow ends at the end of the file that was the newest when it came. Following goes on until
 * the signal aborts, or the log has ended and all of it was read.
 */
export async function* readLog(path: string, request: LogSelection, follow?: LogFollow): AsyncGenerator<Buffer> {
  const newest = await openNewest(path);
  if (newest === undefined) return;
  let left = request.limitBytes ?? Number.POSITIVE_INFINITY;
  for await (const text of textFrom(path, newest, request, follow)) {
    const part = text.subarray(0, left);
    left -= part.length;
    if (part.length > 0) yield part;
    if (left <= 0) return;
  }
}

async function* textFrom(
  path: string,
  newest: LogFile,
  request: LogSelection,
  follow: LogFollow | undefined,
): AsyncGenerator<Buffer> {
  const text = new LogText(request);
  const chunk = Buffer.allocUnsafe(chunkBytes);
  let { file, position } = await firstOf(path, newest, request);
  let next: LogFile | undefined;
  try {
    while (follow?.signal.aborted !== true) {
      // Asked before reading: what was written until the end is still read.
      const last = follow === undefined || follow.ended();
      const { bytesRead } = await file.handle.read(chunk, 0, chunkBytes, position);
      position += bytesRead;
      if (bytesRead > 0) {
        yield text.decode(chunk.subarray(0, bytesRead));
        continue;
      }
      if (next !== undefined) {
        yield text.endFile();
        await file.handle.close();
        [file, next, position] = [next, undefined, 0];
        continue;
      }
      if (follow === undefined && file.inode === newest.inode) break;
      next = await openAfter(path, file.inode);
      if (next === undefined && last) break;
      // A runtime may finish a write to the old file after it has opened the new one.
      if (follow !== undefined && (next === undefined || !file.rotated))
        await pause(follow.clock, followMs, follow.signal);
    }
    yield text.endFile();
  } finally {
    await file.handle.close();
    await next?.handle.close();
  }
}

/** Where reading begins. Closes the newest file if it is not the first. */
async function firstOf(
  path: string,
  newest: LogFile,
  { tailLines, sinceMs = Number.NEGATIVE_INFINITY }: LogSelection,
): Promise<{ file: LogFile; position: number }> {
  const tail = tailLines === undefined ? undefined : new LogTail(tailLines, sinceMs);
  let file = newest;
  try {
    let position = await tail?.find(file.handle);
    if (position !== undefined) return { file, position };
    for (const name of await rotatedBefore(path, newest.inode)) {
      const older = await openLog(name, true);
      if (older === undefined) break;
      if ((await older.handle.stat()).mtimeMs < sinceMs) {
        await older.handle.close();
        break;
      }
      await file.handle.close();
      file = older;
      position = await tail?.find(file.handle);
      if (position !== undefined) return { file, position };
    }
    return { file, position: 0 };
  } catch (error) {
    await file.handle.close();
    throw error;
  }
}
