import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { Clock } from '@keelson/core/runtime';
import type { Target } from '../routes/service-table.ts';
import type { TargetChoice } from '../routes/target-choice.ts';
import type { PortListener, ProxyLimits, ProxyMetrics } from './port-listener.ts';

/** A flow without packets ends after this time; a client that continues then may get another target. */
const idleMs = 60_000;
/** Maximum number of packets of a new flow that are kept until its socket is connected. */
const maxWaiting = 16;

/** The packets of one client address and port to one target. */
interface Flow {
  readonly target: Target;
  readonly socket: Socket;
  /** Packets before the socket is connected; undefined afterwards. */
  waiting: Buffer[] | undefined;
  /** Monotonic time of the last packet. */
  at: number;
}

/** Forwards datagrams that arrive at an address to targets, and the answers back to their clients. */
export class UdpPort implements PortListener {
  readonly #choice: TargetChoice;
  readonly #limits: ProxyLimits;
  readonly #metrics: ProxyMetrics;
  readonly #clock: Clock;
  readonly #flows = new Map<string, Flow>();
  #socket: Socket | undefined;
  #cancel: () => void = () => {};
  #closed = false;

  constructor(choice: TargetChoice, limits: ProxyLimits, metrics: ProxyMetrics, clock: Clock) {
    this.#choice = choice;
    this.#limits = limits;
    this.#metrics = metrics;
    this.#clock = clock;
  }

  /** Number of current flows. */
  get flows(): number {
    return this.#flows.size;
  }

  listen(address: string, port: number): Promise<void> {
    const socket = createSocket(isIPv6(address) ? { type: 'udp6', ipv6Only: true } : { type: 'udp4' });
    this.#socket = socket;
    return new Promise((resolve, reject) => {
      socket.once('error', reject);
      socket.bind(port, address, () => {
        socket.off('error', reject);
        socket.on('error', () => this.#metrics.failed('accept'));
        socket.on('message', (data, from) => this.#receive(data, from));
        this.#sweep();
        resolve();
      });
    });
  }

  /** A socket without its address cannot send answers, so all flows end. */
  async close(): Promise<void> {
    this.destroy();
  }

  destroy(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancel();
    for (const [key, flow] of this.#flows) this.#end(key, flow);
    this.#socket?.close();
  }

  #receive(data: Buffer, from: RemoteInfo): void {
    const key = `${from.address} ${from.port}`;
    let flow = this.#flows.get(key);
    // When the target of a flow is gone, the flow ends immediately: UDP has no connections that could be completed
    // first.
    if (flow !== undefined && !this.#choice.has(flow.target)) {
      this.#end(key, flow);
      flow = undefined;
    }
    flow ??= this.#begin(key, from);
    if (flow === undefined) return;
    flow.at = this.#clock.monotonic();
    if (flow.waiting === undefined) flow.socket.send(data);
    else if (flow.waiting.length < maxWaiting) flow.waiting.push(data);
  }

  #begin(key: string, from: RemoteInfo): Flow | undefined {
    const target = this.#choice.choose(from.address);
    if (target === undefined) {
      this.#metrics.failed('no endpoints');
      return undefined;
    }
    if (!this.#limits.take()) {
      this.#metrics.failed('limit');
      return undefined;
    }
    this.#metrics.opened('UDP');
    const socket = createSocket(isIPv6(target.address) ? 'udp6' : 'udp4');
    const flow: Flow = { target, socket, waiting: [], at: this.#clock.monotonic() };
    this.#flows.set(key, flow);
    // An error occurs, for example, when nothing listens at the target.
    socket.on('error', () => this.#end(key, flow));
    socket.on('message', (answer) => {
      flow.at = this.#clock.monotonic();
      if (!this.#closed) this.#socket?.send(answer, from.port, from.address);
    });
    socket.connect(target.port, target.address, () => {
      const { waiting = [] } = flow;
      flow.waiting = undefined;
      if (this.#flows.get(key) === flow) for (const data of waiting) socket.send(data);
    });
    return flow;
  }

  #end(key: string, flow: Flow): void {
    if (this.#flows.get(key) !== flow) return;
    this.#flows.delete(key);
    this.#limits.release();
    this.#metrics.closed('UDP');
    flow.socket.close();
  }

  #sweep(): void {
    if (this.#closed) return;
    const since = this.#clock.monotonic() - idleMs;
    for (const [key, flow] of this.#flows) if (flow.at <= since) this.#end(key, flow);
    this.#cancel = this.#clock.after(idleMs / 4, () => this.#sweep());
  }
}
