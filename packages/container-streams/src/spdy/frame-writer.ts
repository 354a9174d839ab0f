import type { Duplex } from 'node:stream';
import { dataHeader } from './frames.ts';

/** Maximum content of a data frame that is sent, in bytes. */
const largestFrame = 32 * 1024;

/** Writes frames to a connection. Frames for a closed connection are discarded. */
export class FrameWriter {
  readonly #socket: Duplex;

  constructor(socket: Duplex) {
    this.#socket = socket;
  }

  /** Writes content as data frames. Calls `done` when all was written, or with an error. */
  data(streamId: number, content: Buffer, last: boolean, done: (error?: Error | null) => void): void {
    const socket = this.#socket;
    if (this.#isOver()) {
      done(new Error('the connection is closed'));
      return;
    }
    socket.cork();
    for (let begin = 0; begin < content.length || begin === 0; begin += largestFrame) {
      const part = content.subarray(begin, begin + largestFrame);
      const isEnd = begin + largestFrame >= content.length;
      const header = dataHeader(streamId, part.length, last && isEnd);
      if (part.length > 0) socket.write(header);
      socket.write(part.length > 0 ? part : header, isEnd ? done : undefined);
    }
    socket.uncork();
  }

  control(frame: Buffer): void {
    if (!this.#isOver()) this.#socket.write(frame);
  }

  #isOver(): boolean {
    return this.#socket.destroyed || this.#socket.writableEnded;
  }
}
