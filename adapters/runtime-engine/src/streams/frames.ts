import type { Readable } from 'node:stream';

const headerBytes = 8;

/** Receives a part of a stream; a returned promise pauses the source until it resolves. */
export type FrameSink = (stream: 'stdout' | 'stderr', data: Buffer) => Promise<void> | undefined;

/**
 * Splits a stream of the engine into frames: a header of eight bytes (the stream's number, three zeros, the length) and
 * data. With a terminal, the bytes are the output itself. A sink that returns a promise pauses the stream until the
 * promise resolves. Resolves when the stream has ended.
 */
export function splitFrames(source: Readable, tty: boolean, sink: FrameSink): Promise<void> {
  let rest: Buffer = Buffer.alloc(0);
  const split = (chunk: Buffer): Promise<unknown> | undefined => {
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
      const wait = split(chunk);
      if (wait === undefined) return;
      source.pause();
      void wait.then(() => source.resume());
    });
    source.once('close', () => resolve());
    source.once('end', () => resolve());
  });
}
