import type { Clock } from '@keelson/core/runtime';
import pg from 'pg';

/** Time limit for the orderly end of connections. */
const goodbyeMs = 1000;

/** All connections of one store, in every state. */
export class OpenConnections {
  /** The client class of the driver, whose instances are tracked until their sockets are closed. */
  readonly Client: typeof pg.Client;
  readonly #open = new Set<pg.Client>();
  #gone: (() => void) | undefined;

  constructor() {
    const left = (client: pg.Client) => {
      this.#open.delete(client);
      if (this.#open.size === 0) this.#gone?.();
    };
    const open = this.#open;
    this.Client = class extends pg.Client {
      constructor(config?: string | pg.ClientConfig) {
        super(config);
        open.add(this);
        this.once('end', () => left(this));
      }
    };
  }

  /**
   * Waits for `ending`, which ends connections, and for their sockets; sockets that are open after one second are
   * destroyed. The driver would wait without limit for a dead peer, and for a new connection under inspection.
   */
  async ended(ending: Promise<unknown>, clock: Clock): Promise<void> {
    const cancel = clock.after(goodbyeMs, () => this.#open.forEach(discard));
    await ending;
    if (this.#open.size > 0) {
      await new Promise<void>((resolve) => {
        this.#gone = resolve;
      });
    }
    cancel();
  }
}

/** Destroys the socket of a connection; an orderly end would wait for a peer that may be dead. */
export function discard(client: pg.ClientBase): void {
  // The stream is not part of the driver's public types.
  const { connection } = client as unknown as { readonly connection: { readonly stream: { destroy(): void } } };
  connection.stream.destroy();
}
