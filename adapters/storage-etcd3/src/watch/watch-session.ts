import type { WatchCall } from '../net/endpoint.ts';
import type { WatchTraits } from '../net/server-version.ts';
import { encodeProgressRequest } from '../wire/requests.ts';
import type { WatchFrame } from '../wire/watch-response.ts';

/** Silence after which the server is asked for a sign of life, and after which the stream is given up. */
const askAfterMs = 10_000;
const deadAfterMs = 25_000;
const createWithinMs = 5000;
const checkEveryMs = 2500;

/** One stream with one watch on it, from its request to its end. A stream that falls silent is ended. */
export class WatchSession {
  readonly traits: WatchTraits;
  /** Rejects when the stream breaks or is given up; resolves when the server ends it. */
  readonly ended: Promise<void>;
  readonly #call: WatchCall;
  readonly #timer: NodeJS.Timeout;
  #end: (error?: unknown) => void = () => {};
  #created = false;
  #heardAt = performance.now();
  #holds = 0;

  /** `onFrame` may throw, which ends the session with that error. */
  constructor(call: WatchCall, traits: WatchTraits, request: Buffer, onFrame: (frame: WatchFrame) => void) {
    this.#call = call;
    this.traits = traits;
    this.#timer = setInterval(() => this.#check(), checkEveryMs);
    this.#timer.unref();
    this.ended = new Promise<void>((resolve, reject) => {
      this.#end = (error) => {
        clearInterval(this.#timer);
        call.removeAllListeners('data');
        call.cancel();
        if (error === undefined) resolve();
        else reject(error);
      };
    });
    call.on('data', (frame: WatchFrame) => {
      this.#heardAt = performance.now();
      this.#created ||= frame.created;
      try {
        onFrame(frame);
      } catch (error) {
        this.#end(error);
      }
    });
    call.on('error', (error) => this.#end(error));
    call.on('end', () => this.#end());
    call.write(request);
  }

  /** No frames until as many `resume`s: the server has to wait, too. */
  pause(): void {
    if (this.#holds++ === 0) this.#call.pause();
  }

  resume(): void {
    if (--this.#holds > 0) return;
    this.#heardAt = performance.now();
    this.#call.resume();
  }

  requestProgress(): void {
    this.#call.write(encodeProgressRequest());
  }

  /** Ends the stream; with an error, as if it had broken. */
  close(error?: unknown): void {
    this.#end(error);
  }

  #check(): void {
    const silentMs = performance.now() - this.#heardAt;
    if (this.#holds > 0) return;
    if (!this.#created) {
      if (silentMs > createWithinMs) this.#end(new Error('etcd did not create the watch in time'));
      return;
    }
    // Where idle streams get no answer, the pings of the connection have to do.
    if (!this.traits.answersWhenIdle) return;
    if (silentMs > deadAfterMs) this.#end(new Error('the watch fell silent'));
    else if (silentMs > askAfterMs) this.requestProgress();
  }
}
