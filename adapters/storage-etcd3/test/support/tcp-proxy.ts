import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  /** Nothing passes, and neither side is notified. */
  frozen: boolean;
}

/** A TCP proxy that can cut, swallow and count, to stand between a store and its etcd. */
export class TcpProxy {
  /** The port connections go to; may be changed, for those that come. */
  target: number;
  /** A new connection dies once the server has sent this much on it. */
  cutAfterBytes: () => number = () => Number.POSITIVE_INFINITY;
  /** What the server says does not arrive. */
  swallowAnswers = false;
  /** Connections are refused. */
  refuse = false;
  connections = 0;
  port = 0;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();

  private constructor(target: number) {
    this.target = target;
    this.#server = createServer((client) => this.#accept(client));
  }

  static async start(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    proxy.port = (proxy.#server.address() as AddressInfo).port;
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Breaks every connection; returns how many there were. */
  cut(): number {
    const count = this.#pairs.size;
    for (const { client, server } of [...this.#pairs]) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
    return count;
  }

  /** Connections that are open let nothing pass any more, and do not end; new ones work. */
  freezeOpen(): void {
    for (const pair of this.#pairs) pair.frozen = true;
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(client: Socket): void {
    if (this.refuse) {
      client.resetAndDestroy();
      return;
    }
    this.connections++;
    const server = connect(this.target, '127.0.0.1');
    const pair: Pair = { client, server, frozen: false };
    this.#pairs.add(pair);
    let left = this.cutAfterBytes();
    const end = () => {
      this.#pairs.delete(pair);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.on('close', end);
    }
    client.on('data', (chunk) => {
      if (!pair.frozen && !server.write(chunk)) client.pause();
    });
    server.on('drain', () => client.resume());
    server.on('data', (chunk) => {
      if (this.swallowAnswers || pair.frozen) return;
      const part = chunk.length > left ? chunk.subarray(0, left) : chunk;
      left -= part.length;
      if (!client.write(part)) server.pause();
      if (left <= 0) client.end(() => end());
    });
    client.on('drain', () => server.resume());
  }
}
