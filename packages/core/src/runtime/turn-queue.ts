import { type Clock, systemClock } from './clock.ts';

/** Longest work in one turn of the event loop; between turns connections are accepted and health checks answered. */
const turnMs = 10;
/**
 * Pieces of work that run together before promises are settled and the time is examined; fewer when they are expensive.
 */
const together = 16;

interface Piece {
  readonly run: () => void;
  /** Number of the turn before which it was added. */
  readonly turn: number;
}

class Fifo {
  #pieces: Piece[] = [];
  #first = 0;

  get size(): number {
    return this.#pieces.length - this.#first;
  }

  get head(): Piece | undefined {
    return this.#pieces[this.#first];
  }

  add(piece: Piece): void {
    this.#pieces.push(piece);
  }

  take(): Piece | undefined {
    const piece = this.#pieces[this.#first];
    if (piece === undefined) return undefined;
    this.#first += 1;
    if (this.#first === this.#pieces.length || this.#first === 1024) {
      this.#pieces = this.#pieces.slice(this.#first);
      this.#first = 0;
    }
    return piece;
  }
}

/**
 * Divides the event loop among pieces of work: those of one turn run at its end, together and in the order of arrival,
 * for about {@link turnMs}; the rest waits for the next turn. Every second piece is an urgent one, as long as there are
 * any.
 *
 * Left to itself Node reads one request, runs it to its answer, writes that, and continues with the next connection;
 * the network code of the kernel and ours displace each other from the processor's caches each time. Together all
 * requests are read, then they run in step, then their answers are written, and the same work costs little more than
 * half (docs/explanation/performance.md). No piece waits for a timer: one that comes alone runs in the turn that
 * brought it.
 */
export class TurnQueue {
  readonly #clock: Clock;
  readonly #urgent = new Fifo();
  readonly #waiting = new Fifo();
  /** Flushes scheduled for the next turn, and those of the present turn that are still to come. */
  #scheduled = 0;
  #ofThisTurn = 0;
  #turnEnds = 0;
  /** Turns so far. */
  #turn = 0;
  #group = together;
  /**
   * The flush before this one: what it ran is done when the next flush of the same turn begins, as far as it does not
   * wait for others.
   */
  #lastCount = 0;
  #lastAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param run must not throw */
  add(run: () => void, urgent = false): void {
    (urgent ? this.#urgent : this.#waiting).add({ run, turn: this.#turn });
    this.#schedule();
  }

  /** Resolves when the caller may go on; for long work that is done in slices. */
  pass(): Promise<void> {
    return new Promise((resolve) => this.add(resolve));
  }

  /**
   * Milliseconds of work that were done while the next piece has waited: how far the process is behind. Turns are
   * counted, not time: a process that gets no processor for a second is not behind because of its callers.
   */
  get delayMs(): number {
    const { head } = this.#waiting;
    return head === undefined ? 0 : (this.#turn - head.turn) * turnMs;
  }

  /** Several flushes can share a turn; Node settles promises between them. */
  #schedule(): void {
    const pieces = this.#urgent.size + this.#waiting.size;
    while (this.#scheduled * this.#group < pieces && this.#scheduled < together) {
      this.#scheduled += 1;
      setImmediate(this.#flush);
    }
  }

  readonly #flush = (): void => {
    const now = this.#clock.monotonic();
    if (this.#ofThisTurn === 0) {
      this.#ofThisTurn = this.#scheduled;
      this.#scheduled = 0;
      this.#turnEnds = now + turnMs;
      this.#turn += 1;
    } else if (this.#lastCount > 0) {
      const affordable = Math.floor((this.#lastCount * turnMs) / 2 / (now - this.#lastAt));
      this.#group = Math.max(1, Math.min(together, affordable));
    }
    this.#ofThisTurn -= 1;
    this.#lastAt = now;
    this.#lastCount = 0;
    while (this.#lastCount < this.#group && this.#clock.monotonic() < this.#turnEnds) {
      const [preferred, other] =
        this.#lastCount % 2 === 0 ? [this.#urgent, this.#waiting] : [this.#waiting, this.#urgent];
      const piece = preferred.take() ?? other.take();
      if (piece === undefined) break;
      this.#lastCount += 1;
      piece.run();
    }
    if (this.#ofThisTurn === 0) this.#schedule();
  };
}

/**
 * The queue of this process, which has one event loop. It measures real time, also where a test has a clock of its own.
 */
export const eventLoopTurns = new TurnQueue(systemClock);
