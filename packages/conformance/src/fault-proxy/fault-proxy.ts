import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Random } from '../suite/random.ts';
import { FaultLink, type LinkFaults, noFaults } from './fault-link.ts';

/** `up` = from the client to the server. */
export type Direction = 'up' | 'down' | 'both';

/** Options of a {@link FaultProxy}. */
export interface FaultProxyOptions {
  /** Address of the target; can be changed later. */
  readonly target: { readonly host: string; readonly port: number };
  /** Seed of the random delays. Default 1. */
  readonly seed?: number;
}

interface Connection {
  readonly client: Socket;
  readonly server: Socket;
  readonly up: FaultLink;
  readonly down: FaultLink;
}

/**
 * A TCP proxy on loopback that injects faults between any two programs: clients and servers, servers and databases. All
 * faults apply to open and to new connections until they are removed.
 */
export class FaultProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #random: Random;
  readonly #faults: { readonly up: LinkFaults; readonly down: LinkFaults } = { up: noFaults(), down: noFaults() };
  readonly #connections = new Set<Connection>();
  #target: FaultProxyOptions['target'];
  #refusing = false;
  #resetAfter: { readonly direction: 'up' | 'down'; bytes: number } | undefined;

  private constructor(server: Server, options: FaultProxyOptions) {
    this.#server = server;
    this.#target = options.target;
    this.#random = new Random(options.seed ?? 1);
    server.on('connection', (client) => this.#accept(client));
  }

  /** Opens a proxy on a free port of 127.0.0.1. */
  static async open(options: FaultProxyOptions): Promise<FaultProxy> {
    // Half-open connections remain until the other side has ended too.
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    const proxy = new FaultProxy(server, options);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Sets the target of new connections. */
  retarget(target: FaultProxyOptions['target']): void {
    this.#target = target;
  }

  /** Resets all open connections immediately. */
  cut(): void {
    for (const { client, server } of [...this.#connections]) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
  }

  /** While active, new connections are reset immediately. */
  refuse(on: boolean): void {
    this.#refusing = on;
  }

  /**
   * Forwards nothing, as after a cable was unplugged: connections remain open, including half-open ones. Bytes wait
   * until `heal`.
   */
  blackHole(direction: Direction = 'both'): void {
    this.#set(direction, (faults) => {
      faults.held = true;
    });
  }

  delay(delayMs: number, jitterMs = 0, direction: Direction = 'both'): void {
    this.#set(direction, (faults) => {
      faults.delayMs = delayMs;
      faults.jitterMs = jitterMs;
    });
  }

  throttle(bytesPerSecond: number, direction: Direction = 'both'): void {
    this.#set(direction, (faults) => {
      faults.bytesPerSecond = bytesPerSecond;
    });
  }

  /**
   * Counts the next `bytes` bytes in `direction` over all connections, and resets the connection that carries the last
   * of them, even in the middle of a frame.
   */
  resetAfter(bytes: number, direction: 'up' | 'down' = 'down'): void {
    this.#resetAfter = { direction, bytes };
  }

  /** Removes all faults; delayed bytes are forwarded again. */
  heal(): void {
    this.#refusing = false;
    this.#resetAfter = undefined;
    this.#set('both', (faults) => Object.assign(faults, noFaults()));
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.cut();
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #set(direction: Direction, change: (faults: LinkFaults) => void): void {
    for (const one of ['up', 'down'] as const) if (direction === 'both' || direction === one) change(this.#faults[one]);
    for (const { up, down } of this.#connections) {
      up.update();
      down.update();
    }
  }

  #accept(client: Socket): void {
    if (this.#refusing) {
      client.on('error', () => {});
      client.resetAndDestroy();
      return;
    }
    const server = connect({ ...this.#target, allowHalfOpen: true, noDelay: true });
    const link = (from: Socket, to: Socket, direction: 'up' | 'down') =>
      new FaultLink(from, to, this.#faults[direction], this.#random, (bytes) =>
        this.#count(connection, direction, bytes),
      );
    const connection: Connection = {
      client,
      server,
      up: link(client, server, 'up'),
      down: link(server, client, 'down'),
    };
    this.#connections.add(connection);
    const end = (reset: boolean) => {
      if (!this.#connections.delete(connection)) return;
      connection.up.close();
      connection.down.close();
      for (const socket of [client, server]) {
        if (reset) socket.resetAndDestroy();
        else socket.destroy();
      }
    };
    // The end of a peer behind a black hole is not detected; its sockets end when the fault is removed or when the
    // proxy resets them.
    client.on('error', () => end(true));
    server.on('error', () => end(true));
    client.on('close', () => end(false));
    server.on('close', () => end(false));
  }

  #count(connection: Connection, direction: 'up' | 'down', bytes: number): void {
    const reset = this.#resetAfter;
    if (reset === undefined || reset.direction !== direction) return;
    reset.bytes -= bytes;
    if (reset.bytes > 0) return;
    this.#resetAfter = undefined;
    connection.client.resetAndDestroy();
    connection.server.resetAndDestroy();
  }
}
