import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createNetServer, isIP, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createSecureContext, createServer as createTlsServer, type SecureContext, type TLSSocket } from 'node:tls';
import { type EventRecorder, Informer, keyOf } from '@keelson/client';
import { type ApiClient, isStatusError, StatusReason } from '@keelson/core';
import {
  type Clock,
  declineUpgradesWithBody,
  type Logger,
  type Service as RunningService,
} from '@keelson/core/runtime';
import { NetworkingV1Ingress as Ingress, IngressClass, Secret } from '@keelson/kinds';
import { type ServiceTable, serviceKey } from '../routes/service-table.ts';
import { TargetChoice, usableTargets } from '../routes/target-choice.ts';
import { answer, Forwarder, type NextTarget, type Origin, refuse } from './forward.ts';
import { type Backend, IngressRoutes } from './ingress-routes.ts';

/** Options of an {@link IngressProxy}. */
export interface IngressProxyOptions {
  readonly table: ServiceTable;
  readonly client: ApiClient;
  /** Records events about Ingresses whose certificates cannot be used. */
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Address for HTTP and HTTPS; with port 0 the system chooses one. */
  readonly listen: { readonly host: string; readonly port: number };
  /** The address in the status of Ingresses. Default: `listen.host`. */
  readonly published?: string;
  /** Maximum number of connections of clients at the same time. Default 10,000. */
  readonly maxConnections?: number;
}

/** The class of Ingresses that this proxy serves. */
export const ingressClassName = 'keelson';
const classAnnotation = 'kubernetes.io/ingress.class';
const controllerName = 'keelson.dev/ingress';
/** First byte of a TLS handshake. */
const handshakeByte = 0x16;
/** A client that sends nothing for this time after connecting is disconnected. */
const firstByteMs = 10_000;

interface KeptSecret {
  readonly version: string;
  readonly cert: string;
  readonly key: string;
}

/**
 * Serves the Ingresses of the class `keelson`, and those without a class, on one port: HTTP, and HTTPS with the
 * certificates of their Secrets.
 */
export class IngressProxy implements RunningService {
  readonly name = 'ingress-proxy';
  readonly #options: IngressProxyOptions;
  readonly #ingresses: Informer<Ingress>;
  readonly #secrets: Informer<Secret, KeptSecret>;
  readonly #http: HttpServer;
  readonly #tls: Server;
  readonly #server: Server;
  readonly #forwarder = new Forwarder();
  readonly #sockets = new Set<Socket>();
  readonly #contexts = new Map<string, { version: string; context: SecureContext | undefined }>();
  /** Backends with their choice of targets; the key is the backend as JSON text. */
  readonly #choices = new Map<string, { readonly backend: Backend; readonly choice: TargetChoice }>();
  #unsubscribe: () => void = () => {};
  #routes = new IngressRoutes([]);
  #scheduled = false;
  #publishing: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: IngressProxyOptions) {
    this.#options = options;
    const { client, clock, logger } = options;
    const changed = () => this.#changed();
    const handlers = { added: changed, updated: changed, deleted: changed };
    this.#ingresses = new Informer({
      ...{ client: client.resource(Ingress), clock, logger, handlers },
      keep: (ingress: Ingress) => ingress,
    });
    this.#secrets = new Informer<Secret, KeptSecret>({
      ...{ client: client.resource(Secret), clock, logger, fieldSelector: 'type=kubernetes.io/tls' },
      keep: ({ metadata, data }) => ({
        version: metadata?.resourceVersion ?? '',
        cert: text(data?.['tls.crt']),
        key: text(data?.['tls.key']),
      }),
    });
    this.#http = createServer((request, response) => this.#serve(request, response));
    declineUpgradesWithBody(this.#http);
    this.#http.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
    this.#tls = createTlsServer({ SNICallback: (host, done) => done(null, this.#contextOf(host)) }, (socket) =>
      this.#http.emit('connection', socket),
    );
    this.#tls.on('tlsClientError', (_error, socket) => (socket as TLSSocket).destroy());
    this.#server = createNetServer({ noDelay: true }, (socket) => this.#accept(socket));
    this.#server.maxConnections = options.maxConnections ?? 10_000;
  }

  /** The port on which it listens. */
  get port(): number {
    return (this.#server.address() as AddressInfo | null)?.port ?? 0;
  }

  /** Rejects when the address cannot be used. The table must have been started. */
  async start(): Promise<void> {
    const { host, port } = this.#options.listen;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host, port }, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
    this.#unsubscribe = this.#options.table.onChange(() => this.#updateAll());
    await Promise.all([this.#ingresses.start(), this.#secrets.start(), this.#createClass()]);
    this.#rebuild();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unsubscribe();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    this.#forwarder.close();
    await Promise.all([this.#ingresses.stop(), this.#secrets.stop(), closed]);
    await this.#publishing;
  }

  async #createClass(): Promise<void> {
    const { client, logger } = this.#options;
    await client
      .resource(IngressClass)
      .create({ metadata: { name: ingressClassName }, spec: { controller: controllerName } })
      .catch((err: unknown) => {
        if (!isStatusError(err, StatusReason.AlreadyExists))
          logger.warn('the ingress class was not created', { name: ingressClassName, err });
      });
  }

  /** HTTP and HTTPS share the port; the first byte distinguishes them. */
  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.#sockets.delete(socket));
    socket.setTimeout(firstByteMs, () => socket.destroy());
    socket.once('readable', () => {
      const first = socket.read() as Buffer | null;
      if (first === null) return;
      socket.setTimeout(0);
      socket.removeAllListeners('timeout');
      socket.unshift(first);
      (first[0] === handshakeByte ? this.#tls : this.#http).emit('connection', socket);
    });
  }

  #contextOf(host: string): SecureContext | undefined {
    const name = this.#routes.certificateOf(host);
    const secret = name === undefined ? undefined : this.#secrets.get(name);
    if (name === undefined || secret === undefined) return undefined;
    const known = this.#contexts.get(name);
    if (known?.version === secret.version) return known.context;
    let context: SecureContext | undefined;
    try {
      context = createSecureContext({ cert: secret.cert, key: secret.key, minVersion: 'TLSv1.2' });
    } catch (err) {
      this.#options.logger.warn('the certificate of an ingress cannot be used', { secret: name, err });
      this.#reportSecret(name);
    }
    this.#contexts.set(name, { version: secret.version, context });
    return context;
  }

  #reportSecret(name: string): void {
    const [namespace = '', secretName = ''] = name.split('/');
    const subject = { apiVersion: 'v1', kind: 'Secret', namespace, name: secretName, uid: '' };
    const message = 'the Secret contains no certificate in tls.crt with its key in tls.key';
    this.#options.events.record(subject, 'Warning', 'InvalidCertificate', message);
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const next = this.#targetsOf(request);
    if (next === undefined) answer(response, 404, 'not found');
    else this.#forwarder.forward(request, response, originOf(request), next);
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const next = this.#targetsOf(request);
    if (next === undefined) refuse(socket, 404, 'Not Found', 'not found');
    else this.#forwarder.upgrade(request, socket, head, originOf(request), next);
  }

  /** Returns a function that chooses the next target for a request; undefined when no rule fits the request. */
  #targetsOf(request: IncomingMessage): NextTarget | undefined {
    const backend = this.#routes.find(hostOf(request), (request.url ?? '/').split('?')[0] ?? '/');
    if (backend === undefined) return undefined;
    const choice = this.#choiceOf(backend);
    const client = request.socket.remoteAddress ?? '';
    return (tried) => choice?.choose(client, tried);
  }

  #choiceOf(backend: Backend): TargetChoice | undefined {
    const key = JSON.stringify(backend);
    const known = this.#choices.get(key);
    if (known !== undefined) return known.choice;
    const choice = new TargetChoice({ affinityMs: undefined, now: () => this.#options.clock.monotonic() });
    if (!this.#update(backend, choice)) return undefined;
    this.#choices.set(key, { backend, choice });
    return choice;
  }

  /**
   * Sets the present targets of a backend. Returns false when its service, or the port of the service, does not exist.
   */
  #update({ namespace, service: name, port: wanted }: Backend, choice: TargetChoice): boolean {
    const { table } = this.#options;
    const service = table.service(serviceKey({ namespace, name }));
    const port = service?.spec.ports?.find((one) => (typeof wanted === 'number' ? one.port : one.name) === wanted);
    if (service === undefined || port === undefined) return false;
    const seconds = service.spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? 10_800;
    const affinityMs = service.spec.sessionAffinity === 'ClientIP' ? seconds * 1000 : undefined;
    choice.update(usableTargets(table.targets(service, port.name ?? '', 'TCP'), undefined), affinityMs);
    return true;
  }

  #updateAll(): void {
    for (const [key, { backend, choice }] of this.#choices)
      if (!this.#update(backend, choice)) this.#choices.delete(key);
  }

  #changed(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#rebuild());
  }

  #rebuild(): void {
    this.#scheduled = false;
    if (this.#stopped) return;
    const own = [...this.#ingresses.values()].filter(isServed);
    this.#routes = new IngressRoutes(own);
    const secrets = new Set(this.#routes.certificates.map(({ secret }) => secret));
    for (const name of this.#contexts.keys()) if (!secrets.has(name)) this.#contexts.delete(name);
    this.#publishing = this.#publishing.then(() => this.#publish(own));
  }

  /** Writes the address into the status of the Ingresses that do not have it. */
  async #publish(ingresses: readonly Ingress[]): Promise<void> {
    const { client, listen, published = listen.host, logger } = this.#options;
    const address = isIP(published) === 0 ? { hostname: published } : { ip: published };
    const wanted = [{ ...address, ports: [{ port: this.port, protocol: 'TCP' }] }];
    for (const ingress of ingresses) {
      if (this.#stopped) return;
      if (JSON.stringify(ingress.status?.loadBalancer?.ingress) === JSON.stringify(wanted)) continue;
      const { namespace = '', name = '' } = ingress.metadata ?? {};
      await client
        .resource(Ingress)
        .namespace(namespace)
        .patchSubresource(name, 'status', 'merge', { status: { loadBalancer: { ingress: wanted } } })
        .catch((err: unknown) => {
          if (!isStatusError(err, StatusReason.NotFound))
            logger.warn('the status of an ingress was not written', { ingress: keyOf(ingress), err });
        });
    }
  }
}

function isServed({ metadata, spec }: Ingress): boolean {
  const name = spec.ingressClassName ?? metadata?.annotations?.[classAnnotation];
  return name === undefined || name === '' || name === ingressClassName;
}

/** The host of a request without its port. */
function hostOf({ headers }: IncomingMessage): string {
  return (headers.host ?? '').replace(/:\d+$/, '');
}

function originOf({ socket }: IncomingMessage): Origin {
  return {
    address: (socket.remoteAddress ?? '').replace(/^::ffff:/, ''),
    protocol: (socket as Partial<TLSSocket>).encrypted === true ? 'https' : 'http',
    port: socket.localPort ?? 0,
  };
}

function text(base64: unknown): string {
  return Buffer.from(typeof base64 === 'string' ? base64 : '', 'base64').toString();
}
