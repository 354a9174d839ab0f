import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  type ContainerId,
  type ContainerRuntime,
  RuntimeError,
  type RuntimeStreaming,
  type StreamRequest,
} from '@keelson/container-runtime';
import {
  type ProcessTask,
  type StreamLimits,
  type StreamUpgrade,
  UpgradeRefused,
  upgradeToPorts,
  upgradeToProcess,
} from '@keelson/container-streams';
import { type Clock, declineUpgradesWithBody, systemClock } from '@keelson/core/runtime';
import { Calls } from '../api/calls.ts';
import { type CallHandler, findId, handler } from './handlers.ts';

interface RequestedStreams {
  readonly stdin?: boolean | undefined;
  readonly stdout?: boolean | undefined;
  readonly stderr?: boolean | undefined;
  readonly tty?: boolean | undefined;
}

/** Handlers of the calls that return the URL of a stream. The call, not the stream, rejects invalid requests. */
export function streamHandlers(runtime: ContainerRuntime, server: StreamServer): readonly CallHandler[] {
  const running = async (prefix = '', signal?: AbortSignal): Promise<ContainerId> => {
    const options = signal && { signal };
    const id = await findId(prefix, (exact) =>
      runtime.listContainers(exact === undefined ? {} : { id: exact }, options),
    );
    const { state } = await runtime.containerStatus(id, options);
    if (state !== 'running') throw new RuntimeError('InvalidState', `container ${id} is ${state}, not running`);
    return id;
  };
  return [
    handler(Calls.exec, async ({ containerId, cmd = [], ...wanted }, signal) => {
      const exec = methodOf(runtime, 'exec');
      if (cmd.length === 0) throw new RuntimeError('InvalidArgument', 'a command is required');
      const id = await running(containerId, signal);
      const request = { ...streamsOf(wanted), command: cmd };
      const task = taskOf(() => exec(id, request), 'error executing command in container');
      const url = await server.offer({
        kind: 'exec',
        serve: (upgrade, _query, limits) => upgradeToProcess(upgrade, request, task, limits),
      });
      return { url };
    }),
    handler(Calls.attach, async ({ containerId, ...wanted }, signal) => {
      const attach = methodOf(runtime, 'attach');
      const id = await running(containerId, signal);
      const request = streamsOf(wanted);
      const task = taskOf(() => attach(id, request), 'error attaching to container');
      const url = await server.offer({
        kind: 'attach',
        serve: (upgrade, _query, limits) => upgradeToProcess(upgrade, request, task, limits),
      });
      return { url };
    }),
    handler(Calls.portForward, async ({ podSandboxId = '', port: ports = [] }, signal) => {
      const portForward = methodOf(runtime, 'portForward');
      const id = await findId(podSandboxId, (exact) =>
        runtime.listPodSandboxes(exact === undefined ? {} : { id: exact }, { signal }),
      );
      const { state } = await runtime.podSandboxStatus(id, { signal });
      if (state !== 'ready') throw new RuntimeError('InvalidState', `sandbox ${id} is not ready`);
      const source = { label: `sandbox ${id}`, open: (port: number) => portForward(id, port) };
      const url = await server.offer({
        kind: 'portforward',
        serve: (upgrade, query, limits) => upgradeToPorts(upgrade, () => portsOf(query, ports), source, limits),
      });
      return { url };
    }),
  ];
}

function taskOf(begin: ProcessTask['begin'], failure: string): ProcessTask {
  return { begin, endOf: (exitCode) => ({ exitCode }), failure };
}

function methodOf<N extends keyof RuntimeStreaming>(runtime: ContainerRuntime, name: N): Required<RuntimeStreaming>[N] {
  const method = runtime.streaming[name];
  if (method === undefined)
    throw new RuntimeError('Unsupported', `the runtime ${runtime.name} does not support ${name}`);
  return method.bind(runtime.streaming) as Required<RuntimeStreaming>[N];
}

/** @throws `InvalidArgument` for combinations that the protocol forbids */
function streamsOf({ stdin = false, stdout = false, stderr = false, tty = false }: RequestedStreams): StreamRequest {
  if (tty && stderr) throw new RuntimeError('InvalidArgument', 'tty and stderr cannot both be true');
  if (!(stdin || stdout || stderr))
    throw new RuntimeError('InvalidArgument', 'one of stdin, stdout and stderr must be true');
  return { stdin, stdout, stderr, tty };
}

/** The ports in the query of the connection or, if absent, those of the call. */
function portsOf(query: URLSearchParams, requested: readonly number[]): readonly number[] {
  const given = query.getAll('port').flatMap((text) => text.split(',').map(Number));
  const ports = given.length > 0 ? given : requested;
  return ports.filter((port) => Number.isInteger(port) && port > 0 && port < 65_536);
}

/** A stream that a client with its token can open once. */
export interface StreamOffer {
  /** `exec`, `attach` or `portforward`; part of the URL, so that it appears in logs. */
  readonly kind: string;
  /** Serves the stream. @throws UpgradeRefused while the connection can still receive an HTTP error */
  serve(upgrade: StreamUpgrade, query: URLSearchParams, limits: StreamLimits): Promise<void>;
}

/** Connections without traffic are closed after this time, which is the default of the kubelet. */
const idleMs = 4 * 60 * 60 * 1000;
/** Lifetime of an unused token. */
const tokenLifeMs = 60_000;
/** Limit of unused tokens, which protects against clients that never connect. */
const maxTokens = 1000;

export interface StreamServerOptions {
  readonly clock?: Clock;
  /**
   * Origin of the URLs when another listener passes connections to {@link StreamServer.connected}. Absent: the server
   * listens itself.
   */
  readonly origin?: () => string;
}

/**
 * Issues URLs of streams, each of which is valid for one connection within a minute. A URL contains a secret token of
 * 128 random bits. Without `origin` the server listens at a free port on loopback from the first URL on.
 */
export class StreamServer {
  readonly #clock: Clock;
  readonly #origin: (() => string) | undefined;
  readonly #server = createServer((request, response) => {
    const offer = this.#redeem(request);
    response
      .writeHead(offer === undefined ? 404 : 400)
      .end(offer && 'a stream requires an upgrade to WebSocket or SPDY/3.1\n');
  });
  readonly #offers = new Map<string, StreamOffer>();
  readonly #sockets = new Set<Duplex>();
  #listening: Promise<Server> | undefined;
  #closed = false;

  constructor({ clock = systemClock, origin }: StreamServerOptions = {}) {
    this.#clock = clock;
    this.#origin = origin;
    declineUpgradesWithBody(this.#server);
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
  }

  /** Serves a connection that another listener accepted. */
  connected(socket: Socket): void {
    this.#server.emit('connection', socket);
  }

  /** Issues a URL for the stream. @throws `Unavailable` */
  async offer(offer: StreamOffer): Promise<string> {
    if (this.#closed) throw new RuntimeError('Unavailable', 'the service is shutting down');
    if (this.#offers.size >= maxTokens) throw new RuntimeError('Unavailable', 'too many stream URLs are unused');
    const origin = await this.#currentOrigin();
    const token = randomBytes(16).toString('base64url');
    this.#offers.set(token, offer);
    this.#clock.after(tokenLifeMs, () => this.#offers.delete(token));
    return `${origin}/cri/${offer.kind}/${token}`;
  }

  /** Ends all streams. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#offers.clear();
    for (const socket of this.#sockets) socket.destroy();
    const server = await this.#listening;
    if (server === undefined) return;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }

  async #currentOrigin(): Promise<string> {
    if (this.#origin !== undefined) return this.#origin();
    this.#listening ??= this.#listen();
    const { port } = (await this.#listening).address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  #listen(): Promise<Server> {
    const server = this.#server;
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', () => resolve(server));
    });
  }

  #upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => {});
    const offer = this.#redeem(incoming);
    if (offer === undefined) {
      refuse(socket, new UpgradeRefused(404, 'the stream does not exist or its URL has expired'));
      return;
    }
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    const { searchParams } = new URL(incoming.url ?? '', 'http://127.0.0.1');
    const limits = { clock: this.#clock, idleMs };
    offer.serve({ incoming, socket, head, accepted: () => {} }, searchParams, limits).catch((error: unknown) => {
      if (error instanceof UpgradeRefused) refuse(socket, error);
      else socket.destroy();
    });
  }

  /** Returns the stream of the token in the URL and invalidates the token. */
  #redeem({ url = '' }: IncomingMessage): StreamOffer | undefined {
    const [, kind, token = ''] = /^\/cri\/([a-z]+)\/([\w-]+)(?:\?|$)/.exec(url) ?? [];
    const offer = this.#offers.get(token);
    if (offer === undefined || offer.kind !== kind) return undefined;
    this.#offers.delete(token);
    return offer;
  }
}

function refuse(socket: Duplex, { status, message, headers }: UpgradeRefused): void {
  const lines = Object.entries({
    ...headers,
    Connection: 'close',
    'Content-Length': String(Buffer.byteLength(message)),
  });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n${message}`);
}
