import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

type Direction = 'toServer' | 'toClient';

/**
 * A TCP proxy in front of a server, for faults of the network. `onData` receives every chunk and returns its
 * replacement; `undefined` drops it.
 */
export class TcpProxy {
  readonly #target: number;
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  /** Refuses new connections. */
  refusing = false;
  onData: (data: Buffer, direction: Direction, cut: () => void) => Buffer | undefined = (data) => data;

  private constructor(target: number) {
    this.#target = target;
    this.#server = createServer((client) => this.#accept(client));
  }

  static async start(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy does not listen');
    return address.port;
  }

  get connections(): number {
    return this.#pairs.size;
  }

  /** Closes every connection. */
  cutAll(): void {
    for (const pair of [...this.#pairs]) for (const socket of pair) socket.destroy();
  }

  /** From now on nothing is transmitted, and neither side is notified. */
  blackHole(): void {
    this.onData = () => undefined;
  }

  heal(): void {
    this.onData = (data) => data;
    this.refusing = false;
  }

  async stop(): Promise<void> {
    this.cutAll();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(client: Socket): void {
    if (this.refusing) {
      client.destroy();
      return;
    }
    const server = connect(this.#target, '127.0.0.1');
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    const cut = () => {
      this.#pairs.delete(pair);
      client.destroy();
      server.destroy();
    };
    const forward = (from: Socket, to: Socket, direction: Direction) => {
      from.setNoDelay(true);
      from.on('data', (data) => {
        const passed = this.onData(data, direction, cut);
        if (passed !== undefined && !to.destroyed) to.write(passed);
      });
      from.on('error', cut);
      from.on('close', cut);
    };
    forward(client, server, 'toServer');
    forward(server, client, 'toClient');
  }
}
