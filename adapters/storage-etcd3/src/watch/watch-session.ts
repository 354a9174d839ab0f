import type { Clock } from '@keelson/core/runtime';
import type { WatchCall } from '../net/endpoint.ts';
import type { WatchTraits } from '../net/server-version.ts';
import { encodeProgressRequest } from '../wire/requests.ts';
import type { WatchFrame } from '../wire/watch-response.ts';

/** Time without a frame after which progress is requested, and after which the stream is closed. */
const requestAfterMs = 10_000;
const deadAfterMs = 25_000;
const createWithinMs = 5000;
const checkEveryMs = 2500;

/** One stream with one watch, from its request to its end. A stream without any frame is closed after a time limit. */
export class WatchSession {
  readonly traits: WatchTraits;
  /** Rejects when the stream breaks or exceeds a time limit; resolves when the server ends it. */
  readonly ended: Promise<void>;
  readonly #call: WatchCall;
  readonly #clock: Clock;
  #cancelCheck: () => void = () => {};
  #end: (error?: unknown) => void = () => {};
  #created = false;
  #over = false;
  #lastFrameAt: number;
  #pauses = 0;

  /** @param onFrame an error that it throws ends the session */
  constructor(
    call: WatchCall,
    traits: WatchTraits,
    request: Buffer,
    onFrame: (frame: WatchFrame) => void,
    clock: Clock,
  ) {
    this.#call = call;
    this.traits = traits;
    this.#clock = clock;
    this.#lastFrameAt = clock.monotonic();
    this.ended = new Promise<void>((resolve, reject) => {
      this.#end = (error) => {
        if (this.#over) return;
        this.#over = true;
        this.#cancelCheck();
        call.cancel();
        if (error === undefined) resolve();
        else reject(error);
      };
    });
    call.listen({
      frame: (frame) => {
        if (this.#over) return;
        this.#lastFrameAt = clock.monotonic();
        this.#created ||= frame.created;
        try {
          onFrame(frame);
        } catch (error) {
          this.#end(error);
        }
      },
      ended: (error) => this.#end(error),
    });
    call.write(request);
    this.#checkLater();
  }

  /**
   * Stops the flow of frames until `resume` was called as often as `pause`. The flow control of HTTP/2 then stops the
   * server.
   */
  pause(): void {
    if (this.#pauses++ === 0) this.#call.pause();
  }

  resume(): void {
    if (--this.#pauses > 0) return;
    this.#lastFrameAt = this.#clock.monotonic();
    this.#call.resume();
  }

  requestProgress(): void {
    this.#call.write(encodeProgressRequest());
  }

  /** Ends the stream; with an error, `ended` rejects. */
  close(error?: unknown): void {
    this.#end(error);
  }

  #checkLater(): void {
    if (this.#over) return;
    this.#cancelCheck = this.#clock.after(checkEveryMs, () => {
      this.#check();
      this.#checkLater();
    });
  }

  #check(): void {
    const silentMs = this.#clock.monotonic() - this.#lastFrameAt;
    if (this.#pauses > 0) return;
    if (!this.#created) {
      if (silentMs > createWithinMs) this.#end(new Error('etcd did not create the watch in time'));
      return;
    }
    // Some versions of etcd do not answer progress requests on an idle stream. For these, only the pings of the
    // connection detect a dead server.
    if (!this.traits.answersWhenIdle) return;
    if (silentMs > deadAfterMs) this.#end(new Error('the watch stream received no frame in time'));
    else if (silentMs > requestAfterMs) this.requestProgress();
  }
}
