import type { Load } from '../load/load.ts';
import type { Spawned } from '../measure/spawned.ts';
import type { Stage } from './scenario.ts';
import type { WatchedObject } from './watched-object.ts';

/** Rounds' worth of writes before anybody watches, so that the code of a write is compiled as after minutes of work. */
const warmUp = 10;

/**
 * Watchers of one object that stay for all rounds, in a load process of their own: opening and closing them is work as
 * well, and what it leaves behind for the collector would be charged to the deliveries.
 */
export class Audience {
  readonly #load: Load;
  readonly #stage: Stage;
  readonly #server: Spawned;
  readonly #object: WatchedObject;

  readonly #tls: boolean;

  private constructor(stage: Stage, server: Spawned, object: WatchedObject, tls: boolean) {
    this.#tls = tls;
    this.#load = stage.startLoad();
    this.#stage = stage;
    this.#server = server;
    this.#object = object;
  }

  /** The stage's watchers, as many with each of the requests. */
  static async open(
    stage: Stage,
    server: Spawned,
    object: WatchedObject,
    requests: readonly string[],
    tls = false,
  ): Promise<Audience> {
    const audience = new Audience(stage, server, object, tls);
    const watchers = Math.max(1, Math.floor(stage.watchers / requests.length));
    try {
      for (const request of requests)
        await audience.#load.watch({ port: server.port, tls, watchers, stalled: 0, request });
    } catch (error) {
      await audience.close();
      throw error;
    }
    return audience;
  }

  /** Writes the object so often that what is measured afterwards is not the compiler. */
  static async warmUp(stage: Stage, { port }: Spawned, { patch }: WatchedObject, tls = false): Promise<void> {
    await stage.load.requests({ port, tls, connections: 1, count: warmUp * stage.events, requests: [patch] });
  }

  /** One round: CPU µs per delivery, the writes included, of which `burst` are sent at once. */
  async delivery(burst = 1): Promise<number> {
    const before = this.#server.cpu();
    const { requests } = await this.#load.fanOut({
      port: this.#server.port,
      tls: this.#tls,
      request: this.#object.patch,
      events: this.#stage.events,
      burst,
      bytes: this.#object.leastFrame,
    });
    return ((this.#server.cpu() - before) * 1e6) / requests;
  }

  async close(): Promise<void> {
    await this.#load.stop();
  }
}
