import { connect } from 'node:net';
import type { EventRecorder } from '@keelson/client';
import type { Clock, Logger, Metrics, Service as RunningService } from '@keelson/core/runtime';
import { type ServedPort, servedPorts } from '../routes/served-ports.ts';
import type { KnownService, ServiceTable, Target } from '../routes/service-table.ts';
import { TargetChoice } from '../routes/target-choice.ts';
import { HealthPort } from './health-port.ts';
import { type PortListener, ProxyLimits, ProxyMetrics } from './port-listener.ts';
import { TcpPort } from './tcp-port.ts';
import { UdpPort } from './udp-port.ts';

/** Options of a {@link ServiceProxy}. */
export interface ServiceProxyOptions {
  readonly table: ServiceTable;
  /** Records events about services whose addresses cannot be used. */
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Names of the nodes of this machine, for the traffic policy `Local`. */
  readonly localNodes: () => ReadonlySet<string>;
  /** Addresses on which node ports are served. Default: all of IPv4. */
  readonly nodePortAddresses?: readonly string[];
  /** Returns whether a service is served. Default: all services are served. */
  readonly serves?: (service: KnownService) => boolean;
  /**
   * Another process of the machine may serve the same addresses: an address in use is left to it without an event, and
   * served when that process has ended. Default false.
   */
  readonly isShared?: boolean;
  /** Maximum number of TCP connections and UDP flows at the same time. Default 10,000. */
  readonly maxConnections?: number;
}

interface Open {
  readonly choice: TargetChoice;
  readonly listener: PortListener;
  readonly health: HealthPort | undefined;
}

/** An address that could not be used is tried again after this time. */
const retryMs = 10_000;
/** A pod that may still bind its port is asked again after this time. */
const pendingMs = 1_000;

/**
 * Serves the cluster addresses and node ports of all services in this process. Cluster addresses must be addresses of
 * the machine, such as those of the loopback interface.
 *
 * Pods of the machine may listen at all addresses on the port of their service, which is impossible while this process
 * listens on that port. Therefore a TCP port is served only while it has targets, and, when a pod of the machine has
 * the same port, after that pod listens. If it listens at all addresses, it receives the connections itself.
 */
export class ServiceProxy implements RunningService {
  readonly name = 'service-proxy';
  readonly #options: ServiceProxyOptions;
  readonly #limits: ProxyLimits;
  readonly #metrics: ProxyMetrics;
  /** Open listeners by protocol, address and port. */
  readonly #open = new Map<string, Open>();
  /** Listeners that were closed and may still have connections. */
  readonly #closing = new Set<PortListener>();
  /** Addresses that are not served now, with the reported reason, if any, and the time of the next attempt. */
  readonly #failed = new Map<string, { reason: string | undefined; retryAt: number }>();
  #unsubscribe: () => void = () => {};
  #cancelRetry: () => void = () => {};
  #running: Promise<void> = Promise.resolve();
  #again = false;
  #busy = false;
  #stopped = false;

  constructor(options: ServiceProxyOptions) {
    this.#options = options;
    this.#limits = new ProxyLimits(options.maxConnections ?? 10_000);
    this.#metrics = new ProxyMetrics(options.metrics);
  }

  /** The table must have been started. Resolves when all addresses are served that can be. */
  async start(): Promise<void> {
    this.#unsubscribe = this.#options.table.onChange(() => this.#sync());
    this.#sync();
    await this.#running;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unsubscribe();
    this.#cancelRetry();
    await this.#running;
    for (const { listener } of this.#open.values()) listener.destroy();
    for (const listener of this.#closing) listener.destroy();
    this.#open.clear();
  }

  /** Addresses that are served, for tests and diagnosis: `TCP 127.96.0.1:80`. */
  get addresses(): readonly string[] {
    return [...this.#open.keys()];
  }

  #sync(): void {
    this.#again = true;
    if (this.#busy || this.#stopped) return;
    this.#busy = true;
    this.#running = this.#passes().finally(() => {
      this.#busy = false;
    });
  }

  async #passes(): Promise<void> {
    while (this.#again && !this.#stopped) {
      this.#again = false;
      await this.#pass();
    }
  }

  async #pass(): Promise<void> {
    const wanted = new Map<string, ServedPort>();
    const { table, localNodes, nodePortAddresses = ['0.0.0.0'], serves = () => true } = this.#options;
    for (const service of table.services()) {
      if (!serves(service)) continue;
      for (const one of servedPorts(table, service, localNodes(), nodePortAddresses)) {
        if (one.protocol === 'TCP' && one.targets.length === 0) continue;
        const key = `${one.protocol === 'UDP' ? 'UDP' : 'TCP'} ${one.address}:${one.port}`;
        // Two services have the same address only until one of them is created again.
        if (!wanted.has(key)) wanted.set(key, one);
      }
    }
    for (const [key, { listener }] of this.#open) {
      if (wanted.has(key)) continue;
      this.#open.delete(key);
      this.#closing.add(listener);
      void listener.close().finally(() => this.#closing.delete(listener));
    }
    for (const key of this.#failed.keys()) if (!wanted.has(key)) this.#failed.delete(key);
    for (const [key, one] of wanted) {
      if (this.#stopped) return;
      await this.#serve(key, one);
    }
    this.#scheduleRetry();
  }

  async #serve(key: string, wanted: ServedPort): Promise<void> {
    const { clock } = this.#options;
    const existing = this.#open.get(key);
    if (existing !== undefined) {
      existing.choice.update(wanted.targets, wanted.affinityMs);
      existing.health?.update(wanted.service, wanted.targets.length);
      return;
    }
    const failure = this.#failed.get(key);
    if (failure !== undefined && clock.monotonic() < failure.retryAt) return;
    const pod = wanted.protocol === 'TCP' ? this.#podWithPort(wanted) : undefined;
    if (pod !== undefined && !(await isListening(pod))) {
      this.#failed.set(key, { reason: undefined, retryAt: clock.monotonic() + pendingMs });
      return;
    }
    const choice = new TargetChoice({ affinityMs: wanted.affinityMs, now: () => clock.monotonic() });
    choice.update(wanted.targets, wanted.affinityMs);
    const health = wanted.protocol === 'health' ? new HealthPort(wanted.service, wanted.targets.length) : undefined;
    const listener =
      health ??
      (wanted.protocol === 'UDP'
        ? new UdpPort(choice, this.#limits, this.#metrics, clock)
        : new TcpPort(choice, this.#limits, this.#metrics));
    try {
      await listener.listen(wanted.address, wanted.port);
      this.#failed.delete(key);
      this.#open.set(key, { choice, listener, health });
    } catch (error) {
      const isInUse = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
      const isServedByOther = isInUse && (pod !== undefined || this.#options.isShared === true);
      const reason = isServedByOther ? undefined : reasonOf(error);
      this.#failed.set(key, { reason, retryAt: clock.monotonic() + retryMs });
      if (reason !== undefined && failure?.reason !== reason) this.#report(wanted.service, key, reason);
    }
  }

  /** Returns a target on this machine whose pod listens on the same port as the service. */
  #podWithPort({ targets, port }: ServedPort): Target | undefined {
    const local = this.#options.localNodes();
    return targets.find(
      (target) => target.port === port && target.nodeName !== undefined && local.has(target.nodeName),
    );
  }

  #scheduleRetry(): void {
    this.#cancelRetry();
    if (this.#failed.size === 0) return;
    const { clock } = this.#options;
    const next = Math.min(...[...this.#failed.values()].map(({ retryAt }) => retryAt));
    this.#cancelRetry = clock.after(Math.max(0, next - clock.monotonic()), () => this.#sync());
  }

  #report({ namespace, name, uid }: KnownService, key: string, reason: string): void {
    const { logger } = this.#options;
    const message = `cannot listen on ${key}: ${reason}`;
    logger.warn(message, { service: `${namespace}/${name}` });
    this.#metrics.failed('listen');
    const subject = { apiVersion: 'v1', kind: 'Service', namespace, name, uid };
    this.#options.events.record(subject, 'Warning', 'FailedToListen', message);
  }
}

/** Whether a connection to the target succeeds within a second. */
function isListening({ address, port }: Target): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port, timeout: pendingMs });
    const end = (listening: boolean) => {
      socket.destroy();
      resolve(listening);
    };
    socket.once('connect', () => end(true));
    socket.once('timeout', () => end(false));
    socket.once('error', () => end(false));
  });
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'EADDRINUSE':
      return 'another process uses the address';
    case 'EACCES':
      return 'ports below net.ipv4.ip_unprivileged_port_start need privileges';
    case 'EADDRNOTAVAIL':
      return 'it is no address of this machine';
    default:
      return message;
  }
}
