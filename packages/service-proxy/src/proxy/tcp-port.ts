import { connect, createServer, type Server, type Socket } from 'node:net';
import type { Target } from '../routes/service-table.ts';
import type { TargetChoice } from '../routes/target-choice.ts';
import type { PortListener, ProxyLimits, ProxyMetrics } from './port-listener.ts';

/** Maximum number of targets to which one connection is attempted. */
const maxTries = 4;
const connectTimeoutMs = 5_000;
/** Peers that disappeared without a packet are detected after this time without traffic. */
const keepAliveMs = 60_000;

/**
 * Accepts connections at an address and forwards each to a target. A change of the targets concerns new connections
 * only. Each direction is closed on its own, and each side is read as fast as the other one writes.
 */
export class TcpPort implements PortListener {
  readonly #server: Server;
  readonly #choice: TargetChoice;
  readonly #limits: ProxyLimits;
  readonly #metrics: ProxyMetrics;
  readonly #sockets = new Set<Socket>();

  constructor(choice: TargetChoice, limits: ProxyLimits, metrics: ProxyMetrics) {
    this.#choice = choice;
    this.#limits = limits;
    this.#metrics = metrics;
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (client) =>
      this.#accept(client),
    );
  }

  listen(address: string, port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host: address, port, ipv6Only: true }, () => {
        this.#server.off('error', reject);
        // A failed accept, for example for lack of descriptors, concerns one connection.
        this.#server.on('error', () => this.#metrics.failed('accept'));
        resolve();
      });
    });
  }

  /** Accepts no more connections; established ones continue until their peers close them. */
  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  destroy(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #accept(client: Socket): void {
    if (!this.#limits.take()) {
      this.#metrics.failed('limit');
      client.on('error', () => {}).resetAndDestroy();
      return;
    }
    this.#metrics.opened('TCP');
    this.#hold(client);
    client.once('close', () => {
      this.#limits.release();
      this.#metrics.closed('TCP');
    });
    this.#forward(client, client.remoteAddress ?? '', []);
  }

  #forward(client: Socket, from: string, tried: Target[]): void {
    const target = tried.length < maxTries ? this.#choice.choose(from, tried) : undefined;
    if (target === undefined) {
      this.#metrics.failed(tried.length === 0 ? 'no endpoints' : 'connect');
      client.resetAndDestroy();
      return;
    }
    const upstream = connect({ host: target.address, port: target.port, allowHalfOpen: true, noDelay: true });
    this.#hold(upstream);
    let connected = false;
    // What a client sent before it closed its connection is still passed on.
    const gone = () => {
      if (!connected || !upstream.writableEnded) upstream.destroy();
    };
    client.once('close', gone);
    upstream.setTimeout(connectTimeoutMs, () => upstream.destroy());
    upstream.once('connect', () => {
      connected = true;
      upstream.setTimeout(0);
      upstream.setKeepAlive(true, keepAliveMs);
      client.setKeepAlive(true, keepAliveMs);
      client.pipe(upstream);
      upstream.pipe(client);
    });
    upstream.once('close', (failed) => {
      client.off('close', gone);
      if (connected) {
        // `pipe` forwards the regular end of each direction. A connection that ended otherwise was reset, so that the
        // connection of the client is reset too.
        if (failed || !client.writableEnded) client.resetAndDestroy();
      } else if (!client.destroyed) this.#forward(client, from, [...tried, target]);
    });
    client.once('error', () => upstream.resetAndDestroy());
  }

  #hold(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => this.#sockets.delete(socket));
  }
}
