import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  /** Nothing passes, and neither side is notified. */
  frozen: boolean;
}

/** A TCP proxy between a store and its etcd that can close, block and count connections. */
export class TcpProxy {
  /** The port of the server; a change applies to new connections. */
  target: number;
  /** A new connection is closed once the server has sent this many bytes on it. */
  cutAfterBytes: () => number = () => Number.POSITIVE_INFINITY;
  /** Bytes of the server are discarded. */
  swallowAnswers = false;
  /** Connections are refused. */
  refuse = false;
  /** Milliseconds by which the answers of the server are late. */
  delayMs = 0;
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

  /** Open connections transmit nothing from now on, without being closed; new ones work. */
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
      const pass = () => {
        if (!client.write(part)) server.pause();
        if (left <= 0) client.end(() => end());
      };
      if (this.delayMs === 0) pass();
      else setTimeout(pass, this.delayMs);
    });
    client.on('drain', () => server.resume());
  }
}
