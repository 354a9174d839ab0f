import type { Clock } from '@keelson/core';
import pg from 'pg';

/** How long connections may take to say goodbye. */
const goodbyeMs = 1000;

/** All connections of one store, whoever made them and however far they are. */
export class OpenConnections {
  /** The driver's client, known here until its socket is closed. */
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
   * Waits for `ending`, which asks connections to end, and for their sockets; what is open after a second is broken
   * off. The driver alone waits for ever for a peer that is gone without an end, and for a new connection that it still
   * looks over.
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

/** Breaks a connection off; ending it politely would wait for a peer that may be gone. */
export function discard(client: pg.ClientBase): void {
  // The stream is not part of the driver's public types.
  const { connection } = client as unknown as { readonly connection: { readonly stream: { destroy(): void } } };
  connection.stream.destroy();
}
