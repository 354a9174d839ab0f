import type { Readable } from 'node:stream';

/**
 * The lines of a stream as they come; throws when the stream breaks. An object per line is how the engine answers for
 * as long as it takes.
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
