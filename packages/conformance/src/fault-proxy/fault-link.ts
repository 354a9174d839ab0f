import type { Socket } from 'node:net';
import type { Random } from '../suite/random.ts';

/** Faults of one direction of a proxied connection. */
export interface LinkFaults {
  /** Nothing is read or forwarded, not even the end of the connection. */
  held: boolean;
  delayMs: number;
  /** Random share added to the delay. */
  jitterMs: number;
  /** Bytes per second; 0 means unlimited. */
  bytesPerSecond: number;
}

export const noFaults = (): LinkFaults => ({ held: false, delayMs: 0, jitterMs: 0, bytesPerSecond: 0 });

/** Maximum unsent bytes of a link; further bytes remain in the socket of the sender. */
const maxQueuedBytes = 256 * 1024;

interface Piece {
  /** Undefined when the sender has ended the connection. */
  readonly bytes: Buffer | undefined;
  readonly due: number;
}

/**
 * One direction of one connection. Bytes are always forwarded in order; delayed bytes are not lost, as on a network
 * whose packet loss TCP has repaired.
 */
export class FaultLink {
  passedBytes = 0;
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #faults: LinkFaults;
  readonly #random: Random;
  readonly #onBytes: (bytes: number) => void;
  readonly #queue: Piece[] = [];
  #queuedBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #blocked = false;
  /** Time before which the rate limit forwards nothing. */
  #free = 0;

  constructor(from: Socket, to: Socket, faults: LinkFaults, random: Random, onBytes: (bytes: number) => void) {
    this.#from = from;
    this.#to = to;
    this.#faults = faults;
    this.#random = random;
    this.#onBytes = onBytes;
    from.on('data', (bytes: Buffer) => this.#arrived(bytes));
    from.on('end', () => this.#arrived(undefined));
    to.on('drain', () => {
      this.#blocked = false;
      this.update();
    });
    this.update();
  }

  /** Applies changed faults. */
  update(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#faults.held || this.#blocked || this.#queuedBytes >= maxQueuedBytes) this.#from.pause();
    else this.#from.resume();
    this.#send();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#queue.length = 0;
  }

  #arrived(bytes: Buffer | undefined): void {
    const { delayMs, jitterMs } = this.#faults;
    const delay = delayMs + (jitterMs > 0 ? this.#random.next() * jitterMs : 0);
    const last = this.#queue.at(-1)?.due ?? 0;
    this.#queue.push({ bytes, due: Math.max(last, performance.now() + delay) });
    this.#queuedBytes += bytes?.length ?? 0;
    if (this.#queuedBytes >= maxQueuedBytes) this.#from.pause();
    if (this.#timer === undefined) this.#send();
  }

  #send(): void {
    while (!this.#faults.held && !this.#blocked && !this.#to.destroyed) {
      const piece = this.#queue[0];
      if (piece === undefined) break;
      const now = performance.now();
      const wait = Math.max(piece.due, this.#free) - now;
      if (wait > 0) {
        this.#timer = setTimeout(() => this.update(), Math.ceil(wait));
        return;
      }
      this.#queue.shift();
      if (piece.bytes === undefined) {
        this.#to.end();
        break;
      }
      this.#pass(this.#allowed(piece, now));
    }
    if (!this.#faults.held && !this.#blocked && this.#queuedBytes < maxQueuedBytes) this.#from.resume();
  }

  /** Returns the part of the piece that the rate limit allows now; the rest returns to the head of the queue. */
  #allowed(piece: Piece, now: number): Buffer {
    const bytes = piece.bytes as Buffer;
    const { bytesPerSecond } = this.#faults;
    if (bytesPerSecond === 0) return bytes;
    const size = Math.min(bytes.length, Math.max(1, Math.floor(bytesPerSecond / 20)));
    this.#free = now + (size / bytesPerSecond) * 1000;
    if (size < bytes.length) this.#queue.unshift({ bytes: bytes.subarray(size), due: piece.due });
    return bytes.subarray(0, size);
  }

  #pass(bytes: Buffer): void {
    this.#queuedBytes -= bytes.length;
    this.passedBytes += bytes.length;
    this.#onBytes(bytes.length);
    if (!this.#to.destroyed && !this.#to.write(bytes)) {
      this.#blocked = true;
      this.#from.pause();
    }
  }
}
