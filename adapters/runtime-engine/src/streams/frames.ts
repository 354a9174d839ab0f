import type { Readable } from 'node:stream';

const headerBytes = 8;

/** Takes a part of a stream; a promise asks to wait with the next. */
export type FrameSink = (stream: 'stdout' | 'stderr', data: Buffer) => Promise<void> | undefined;

/**
 * Takes an engine's stream apart: frames of eight bytes of header (the stream's number, three zeros, the length) and
 * data; of a terminal, the bytes are the output itself. A sink that returns a promise holds the stream until it
 * resolves. Resolves when the stream is over.
 */
export function splitFrames(source: Readable, tty: boolean, sink: FrameSink): Promise<void> {
  let rest: Buffer = Buffer.alloc(0);
  const take = (chunk: Buffer): Promise<unknown> | undefined => {
    if (tty) return sink('stdout', chunk);
    const waits: Promise<void>[] = [];
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (rest.length >= headerBytes && rest.length >= headerBytes + rest.readUInt32BE(4)) {
      const end = headerBytes + rest.readUInt32BE(4);
      const wait = sink(rest[0] === 2 ? 'stderr' : 'stdout', rest.subarray(headerBytes, end));
      if (wait !== undefined) waits.push(wait);
      rest = rest.subarray(end);
    }
    return waits.length === 0 ? undefined : Promise.all(waits);
  };
  return new Promise((resolve) => {
    source.on('data', (chunk: Buffer) => {
      const wait = take(chunk);
      if (wait === undefined) return;
      source.pause();
      void wait.then(() => source.resume());
    });
    source.once('close', () => resolve());
    source.once('end', () => resolve());
  });
}
