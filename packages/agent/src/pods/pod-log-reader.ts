import { type FileHandle, open } from 'node:fs/promises';
import { pause } from '@keelson/client';
import { parseLogLine } from '@keelson/container-runtime';
import type { Clock } from '@keelson/core';
import type { LogRequest } from '../contracts/pod-state.ts';

const chunkBytes = 64 * 1024;
const followMs = 200;
const newline = 0x0a;

/**
 * The lines of a log file that a request wants, ended by line ends. Following goes on until the signal aborts, or `ended` says that no more will
 * come and the file is at its end.
 */
export async function* readLog(path: string, request: LogRequest, ended: () => boolean, clock: Clock): AsyncGenerator<Buffer> {
  const file = await open(path, 'r');
  try {
    let left = request.limitBytes ?? Number.POSITIVE_INFINITY;
    const skip = request.tailLines === undefined ? 0 : Math.max(0, (await countLines(file, request)) - request.tailLines);
    let seen = 0;
    for await (const line of linesOf(file, request, ended, clock)) {
      const text = wanted(line, request);
      if (text === undefined) continue;
      seen += 1;
      if (seen <= skip) continue;
      const part = text.subarray(0, left);
      left -= part.length;
      if (part.length > 0) yield part;
      if (left <= 0) return;
    }
  } finally {
    await file.close();
  }
}

async function countLines(file: FileHandle, request: LogRequest): Promise<number> {
  let count = 0;
  for await (const line of linesOf(file, { ...request, follow: false }, () => true, undefined))
    if (wanted(line, request)) count += 1;
  return count;
}

async function* linesOf(
  file: FileHandle,
  { follow, signal }: LogRequest,
  ended: () => boolean,
  clock: Clock | undefined,
): AsyncGenerator<Buffer> {
  let position = 0;
  let rest = Buffer.alloc(0);
  const chunk = Buffer.allocUnsafe(chunkBytes);
  while (!signal.aborted) {
    // Asked before reading: what was written until the end is still read.
    const last = ended();
    const { bytesRead } = await file.read(chunk, 0, chunkBytes, position);
    position += bytesRead;
    if (bytesRead === 0) {
      if (!follow || last || clock === undefined) break;
      await pause(clock, followMs, signal);
      continue;
    }
    rest = Buffer.concat([rest, chunk.subarray(0, bytesRead)]);
    let begin = 0;
    for (let end = rest.indexOf(newline); end >= 0; end = rest.indexOf(newline, begin)) {
      yield rest.subarray(begin, end);
      begin = end + 1;
    }
    rest = Buffer.from(rest.subarray(begin));
  }
  if (rest.length > 0 && !signal.aborted) yield rest;
}

function wanted(line: Buffer, { sinceMs, timestamps }: LogRequest): Buffer | undefined {
  const parsed = parseLogLine(line);
  if (parsed === undefined) return undefined;
  if (sinceMs !== undefined && Date.parse(parsed.time) < sinceMs) return undefined;
  const end = Buffer.from(parsed.partial ? '' : '\n');
  return Buffer.concat([Buffer.from(timestamps ? `${parsed.time} ` : ''), parsed.text, end]);
}
