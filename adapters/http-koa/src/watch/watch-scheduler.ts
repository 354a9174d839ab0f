import type { EventRepresentation, WatchEvent } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';

/** Longest uninterrupted time for which watchers are served, in milliseconds. Other requests run in between. */
const sliceMs = 2;
/** Number of watchers between two checks of the clock. */
const stride = 16;

/** A watcher that has events to send. */
export interface Pump {
  pump(): void;
}

/**
 * Pause after a pass over the watchers, as a multiple of the time that the pass took, and its limit in milliseconds. A
 * write to a socket costs the same for one event and for ten, so a server that is busy with deliveries sends several
 * together, and takes at most a quarter of its time for the writes. An event that comes alone is not delayed.
 */
const pauseFactor = 3;
const longestPauseMs = 20;

/**
 * Serves watchers that have become readable: those of one turn of the event loop together and in fair slices. Waiting
 * for the end of the turn, and of the pause after the previous pass, joins the events of several writes into one send
 * per watcher.
 */
export class WatchScheduler {
  readonly joiner = new FrameJoiner();
  readonly #clock: Clock;
  #ready: Pump[] = [];
  #next = 0;
  #scheduled = false;
  /** Time that the present pass has taken so far. */
  #passMs = 0;
  /** End of the pause after the previous pass. */
  #pauseUntil = 0;
  #cancelPause: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Serves a watcher that has new events, after the pause. */
  add(pump: Pump): void {
    this.#ready.push(pump);
    if (this.#scheduled) return;
    this.#scheduled = true;
    const pauseMs = this.#pauseUntil - this.#clock.monotonic();
    if (pauseMs <= 0) setImmediate(this.#run);
    else this.#cancelPause = this.#clock.after(pauseMs, this.#run);
  }

  /**
   * Serves a watcher that can continue to send, without waiting for the pause. All other ready watchers are served with
   * it.
   */
  addNow(pump: Pump): void {
    this.#pauseUntil = 0;
    if (this.#cancelPause !== undefined) {
      this.#cancelPause();
      this.#cancelPause = undefined;
      this.#scheduled = false;
    }
    this.add(pump);
  }

  readonly #run = (): void => {
    this.#cancelPause = undefined;
    const began = this.#clock.monotonic();
    const until = began + sliceMs;
    let now = began;
    // Watchers that become readable while others are served wait for the next slice.
    const count = this.#ready.length;
    while (this.#next < count) {
      this.#ready[this.#next]?.pump();
      this.#next += 1;
      if (this.#next % stride === 0) {
        now = this.#clock.monotonic();
        if (now >= until) break;
      }
    }
    if (this.#next % stride !== 0) now = this.#clock.monotonic();
    this.#passMs += now - began;
    if (this.#next >= this.#ready.length) {
      this.#ready = [];
      this.#next = 0;
      this.#scheduled = false;
      this.#pauseUntil = now + Math.min(this.#passMs * pauseFactor, longestPauseMs);
      this.#passMs = 0;
      this.joiner.clear();
      return;
    }
    if (this.#next >= count) {
      this.#ready = this.#ready.slice(count);
      this.#next = 0;
    }
    setImmediate(this.#run);
  };
}

/** Longest joined buffer. Copying more bytes costs more than another write. */
const joinBytes = 64 * 1024;

/** The encoded frames of several events. */
export interface JoinedFrames {
  /** The frames in order, usually joined into one buffer. */
  readonly buffers: readonly Buffer[];
  /** Total length of the buffers. */
  readonly bytes: number;
}

const noFrames: JoinedFrames = { buffers: [], bytes: 0 };

/**
 * Joins the frames of several events into one buffer, so that a burst is one write per watcher. The last result is
 * cached: watchers at the same position are served one after the other and share the buffer.
 */
export class FrameJoiner {
  #events: readonly WatchEvent[] = [];
  #representation: string | undefined;
  #joined = noFrames;

  /** Buffers that contain all frames in order. */
  join(events: readonly WatchEvent[], representation: EventRepresentation): JoinedFrames {
    if (this.#representation === representation.id && sameEvents(events, this.#events)) return this.#joined;
    const buffers = joinedBuffers(events, representation);
    this.#events = events;
    this.#representation = representation.id;
    this.#joined = { buffers, bytes: buffers.reduce((sum, { length }) => sum + length, 0) };
    return this.#joined;
  }

  /** Drops the cached result at the end of a turn. */
  clear(): void {
    this.#events = [];
    this.#representation = undefined;
    this.#joined = noFrames;
  }
}

function joinedBuffers(events: readonly WatchEvent[], representation: EventRepresentation): Buffer[] {
  const joined: Buffer[] = [];
  let group: Buffer[] = [];
  let size = 0;
  for (const event of events) {
    const frame = event.encoded(representation);
    if (size > 0 && size + frame.length > joinBytes) {
      joined.push(group.length === 1 && group[0] ? group[0] : Buffer.concat(group, size));
      group = [];
      size = 0;
    }
    group.push(frame);
    size += frame.length;
  }
  if (size > 0) joined.push(group.length === 1 && group[0] ? group[0] : Buffer.concat(group, size));
  return joined;
}

function sameEvents(a: readonly WatchEvent[], b: readonly WatchEvent[]): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
