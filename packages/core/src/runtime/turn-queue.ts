import { type Clock, systemClock } from './clock.ts';

/** Longest work in one turn of the event loop; between turns connections are accepted and health checks answered. */
const turnMs = 10;
/**
 * Pieces of work that run together before promises are settled and the time is examined; fewer when they are expensive.
 */
const together = 16;
/** Time after which the functions of {@link TurnQueue.atEnd} run although the turn has not ended. */
const endMs = 1;

interface Piece {
  readonly run: () => void;
  /** Value of the turn counter when the piece was added. */
  readonly turn: number;
}

class Fifo<T> {
  #items: T[] = [];
  #first = 0;

  get size(): number {
    return this.#items.length - this.#first;
  }

  get head(): T | undefined {
    return this.#items[this.#first];
  }

  add(item: T): void {
    this.#items.push(item);
  }

  take(): T | undefined {
    const item = this.#items[this.#first];
    if (item === undefined) return undefined;
    this.#first += 1;
    if (this.#first === this.#items.length || this.#first === 1024) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }
}

/** A slice of long work, which runs after the pieces of callers that waited when it was added. */
interface Slice {
  readonly run: () => void;
  /** Number of caller pieces that must have been taken before the slice runs. */
  readonly due: number;
}

/** Pieces of several callers, which take turns; the pieces of one caller keep their order. */
class FairQueue {
  readonly #callers = new Map<string, Fifo<Piece>>();
  /** Callers with pieces, the next one first. */
  readonly #turns = new Fifo<string>();
  size = 0;

  add(caller: string, piece: Piece): void {
    let pieces = this.#callers.get(caller);
    if (pieces === undefined) {
      pieces = new Fifo();
      this.#callers.set(caller, pieces);
      this.#turns.add(caller);
    }
    pieces.add(piece);
    this.size += 1;
  }

  head(caller: string): Piece | undefined {
    return this.#callers.get(caller)?.head;
  }

  take(): Piece | undefined {
    const caller = this.#turns.take();
    if (caller === undefined) return undefined;
    const pieces = this.#callers.get(caller);
    const piece = pieces?.take();
    this.size -= 1;
    if (pieces?.size) this.#turns.add(caller);
    else this.#callers.delete(caller);
    return piece;
  }
}

/**
 * Divides the event loop among pieces of work: those of one turn run at its end, together, for about {@link turnMs};
 * the rest waits for the next turn. Callers take turns, so that one with many pieces does not delay the others; the
 * pieces of one caller run in the order of arrival. Every second piece is an urgent one, as long as there are any.
 *
 * Without it, Node reads one request, runs it to its answer, writes that, and continues with the next connection; the
 * network code of the kernel and the code of the server displace each other from the caches of the processor each time.
 * With it, all requests are read, then they run together, then their answers are written, and the same work costs
 * little more than half (docs/explanation/performance.md). No piece waits for a timer: a single one runs in the turn in
 * which it arrived.
 */
export class TurnQueue {
  readonly #clock: Clock;
  readonly #urgent = new Fifo<Piece>();
  readonly #waiting = new FairQueue();
  readonly #slices = new Fifo<Slice>();
  /** Number of pieces of callers that have been taken from the queue. */
  #taken = 0;
  /** Number of flushes scheduled for the next turn of the event loop, and number of those still to run in this turn. */
  #scheduled = 0;
  #ofThisTurn = 0;
  #turnEnds = 0;
  /** Number of turns of the event loop in which the queue has run work. */
  #turn = 0;
  #group = together;
  /**
   * Number of pieces and start time of the previous flush. When the next flush of the same turn begins, those pieces
   * have ended, unless they wait for others, so that the time between both is the cost of the pieces.
   */
  #lastCount = 0;
  #lastAt = 0;
  /** Functions that run at the end of this turn, and start time of the flush that added the first of them. */
  #ending: (() => void)[] = [];
  #endingSince = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Adds a piece of work, which must not throw. It takes the turn of `caller`, by default an empty name, which is a
   * caller like others; `urgent` pieces run before those of callers.
   */
  add(run: () => void, { caller = '', urgent = false }: { caller?: string; urgent?: boolean } = {}): void {
    const piece = { run, turn: this.#turn };
    if (urgent) this.#urgent.add(piece);
    else this.#waiting.add(caller, piece);
    this.#schedule();
  }

  /**
   * Runs a function, which must not throw, when the work of this turn and its promises have ended, or when it has
   * waited for {@link endMs} and a group of pieces has ended. The functions run together, in the order of the calls.
   */
  atEnd(run: () => void): void {
    if (this.#ending.length === 0) {
      this.#endingSince = this.#lastAt;
      if (this.#ofThisTurn === 0) process.nextTick(this.#end);
    }
    this.#ending.push(run);
  }

  readonly #end = (): void => {
    const ending = this.#ending;
    this.#ending = [];
    for (const run of ending) run();
  };

  /** Resolves when everything that waits now has run; for long work that is done in slices. */
  pass(): Promise<void> {
    return new Promise((resolve) => {
      this.#slices.add({ run: resolve, due: this.#taken + this.#waiting.size });
      this.#schedule();
    });
  }

  /**
   * Milliseconds of work that were done while the next piece of a caller has waited: how far the process is behind with
   * this caller. Turns are counted, not time: a process that gets no processor for a second is not behind because of
   * its callers.
   */
  delayMs(caller = ''): number {
    const head = this.#waiting.head(caller);
    return head === undefined ? 0 : (this.#turn - head.turn) * turnMs;
  }

  /**
   * Schedules flushes for the next turn. Several flushes may run in one turn, because Node settles promises between
   * them.
   */
  #schedule(): void {
    const pieces = this.#urgent.size + this.#waiting.size + this.#slices.size;
    while (this.#scheduled * this.#group < pieces && this.#scheduled < together) {
      this.#scheduled += 1;
      setImmediate(this.#flush);
    }
  }

  /** The next slice when it is due, otherwise the next piece of a caller. */
  #next(): { readonly run: () => void } | undefined {
    const slice = this.#slices.head;
    if (slice !== undefined && (slice.due <= this.#taken || this.#waiting.size === 0)) return this.#slices.take();
    const piece = this.#waiting.take();
    if (piece !== undefined) this.#taken += 1;
    return piece;
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
    if (this.#ending.length > 0 && now - this.#endingSince >= endMs) this.#end();
    this.#ofThisTurn -= 1;
    this.#lastAt = now;
    this.#lastCount = 0;
    while (this.#lastCount < this.#group && this.#clock.monotonic() < this.#turnEnds) {
      const urgentFirst = this.#lastCount % 2 === 0;
      const piece = urgentFirst ? (this.#urgent.take() ?? this.#next()) : (this.#next() ?? this.#urgent.take());
      if (piece === undefined) break;
      this.#lastCount += 1;
      piece.run();
    }
    if (this.#ofThisTurn > 0) return;
    this.#schedule();
    // The promises of the last group settle first, so that its functions run together with those of earlier groups.
    if (this.#ending.length > 0) queueMicrotask(() => process.nextTick(this.#end));
  };
}

/**
 * The queue of this process, which has one event loop. It measures real time, also where a test has a clock of its own.
 */
export const eventLoopTurns = new TurnQueue(systemClock);
