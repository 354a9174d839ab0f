import type { Readable } from 'node:stream';

/**
 * Yields the lines of a stream as they arrive; throws when the stream fails. Long-running calls of the engine respond
 * with one JSON object per line.
 */
export async function* lines(stream: Readable): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of stream.setEncoding('utf8')) {
    const parts = (rest + String(chunk)).split('\n');
    rest = parts.pop() ?? '';
    yield* parts;
  }
  if (rest !== '') yield rest;
}
