import type { Socket } from 'node:net';
import type { Random } from '../suite/random.ts';

/** What one direction of a proxied connection does to bytes. */
export interface LinkFaults {
  /** Nothing is read, nothing is passed on, not even the end: the other side is simply silent. */
  held: boolean;
  delayMs: number;
  /** Random share added to the delay. */
  jitterMs: number;
  /** 0 = not limited. */
  bytesPerSecond: number;
}

export const noFaults = (): LinkFaults => ({ held: false, delayMs: 0, jitterMs: 0, bytesPerSecond: 0 });

/** Unsent bytes of a link; more are left in the sender's socket. */
const maxQueuedBytes = 256 * 1024;

interface Piece {
  /** Undefined = the sender has ended. */
  readonly bytes: Buffer | undefined;
  readonly due: number;
}

/**
 * One direction of one connection. Bytes pass in order whatever happens to them; what is held back is not lost, as on a
 * network that TCP has recovered from.
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
  /** The rate limit lets nothing pass before. */
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

  /** The faults have changed. */
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

  /** As much of the piece as the rate limit lets through at once; the rest goes back to the head of the queue. */
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
