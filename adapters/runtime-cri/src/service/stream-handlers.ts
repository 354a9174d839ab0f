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
import { type Clock, systemClock } from '@keelson/core';
import { Calls } from '../api/calls.ts';
import { type Answer, answer, findId } from './handlers.ts';

interface WantedStreams {
  readonly stdin?: boolean | undefined;
  readonly stdout?: boolean | undefined;
  readonly stderr?: boolean | undefined;
  readonly tty?: boolean | undefined;
}

/**
 * The calls that are answered with the address of a stream. What is wrong with the subject is said at once, not in the
 * stream.
 */
export function streamAnswers(runtime: ContainerRuntime, server: StreamServer): readonly Answer[] {
  const running = async (word = '', signal?: AbortSignal): Promise<ContainerId> => {
    const options = signal && { signal };
    const id = await findId(word, (exact) => runtime.listContainers(exact === undefined ? {} : { id: exact }, options));
    const { state } = await runtime.containerStatus(id, options);
    if (state !== 'running') throw new RuntimeError('InvalidState', `container ${id} is ${state}, not running`);
    return id;
  };
  return [
    answer(Calls.exec, async ({ containerId, cmd = [], ...wanted }, signal) => {
      const exec = methodOf(runtime, 'exec');
      if (cmd.length === 0) throw new RuntimeError('InvalidArgument', 'a command is needed');
      const id = await running(containerId, signal);
      const request = { ...streamsOf(wanted), command: cmd };
      const task = taskOf(() => exec(id, request), 'error executing command in container');
      const url = await server.offer({
        kind: 'exec',
        serve: (upgrade, _query, limits) => upgradeToProcess(upgrade, request, task, limits),
      });
      return { url };
    }),
    answer(Calls.attach, async ({ containerId, ...wanted }, signal) => {
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
    answer(Calls.portForward, async ({ podSandboxId = '', port: ports = [] }, signal) => {
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
  if (method === undefined) throw new RuntimeError('Unsupported', `the runtime ${runtime.name} has no ${name}`);
  return method.bind(runtime.streaming) as Required<RuntimeStreaming>[N];
}

/** @throws `InvalidArgument` for what the protocol forbids */
function streamsOf({ stdin = false, stdout = false, stderr = false, tty = false }: WantedStreams): StreamRequest {
  if (tty && stderr) throw new RuntimeError('InvalidArgument', 'a terminal has no stderr of its own');
  if (!(stdin || stdout || stderr)) throw new RuntimeError('InvalidArgument', 'at least one stream must be asked for');
  return { stdin, stdout, stderr, tty };
}

/** The ports of the connection, else those that were asked for with the call. */
function portsOf(query: URLSearchParams, asked: readonly number[]): readonly number[] {
  const given = query.getAll('port').flatMap((text) => text.split(',').map(Number));
  const ports = given.length > 0 ? given : asked;
  return ports.filter((port) => Number.isInteger(port) && port > 0 && port < 65_536);
}

/** What is done with the connection of a caller that has a token. */
export interface StreamOffer {
  /** `exec`, `attach` or `portforward`: part of the address, for those who read logs. */
  readonly kind: string;
  /** @throws UpgradeRefused before the connection is taken over */
  serve(upgrade: StreamUpgrade, query: URLSearchParams, limits: StreamLimits): Promise<void>;
}

/** Connections without traffic are ended after this time, as kubelet does by default. */
const idleMs = 4 * 60 * 60 * 1000;
/** Whoever has a token may use it once within this time. */
const tokenLifeMs = 60_000;
/** More would be somebody who asks and never comes. */
const maxTokens = 1000;

export interface StreamServerOptions {
  readonly clock?: Clock;
  /** Where connections come in that are handed over by {@link StreamServer.connected}. Absent: it listens itself. */
  readonly origin?: () => string;
}

/**
 * Gives out addresses of streams, each good for one use within a minute. The address is the secret: it has a token of
 * 128 random bits. On its own it listens at a port of the loopback that the system chooses, from the first address on.
 */
export class StreamServer {
  readonly #clock: Clock;
  readonly #origin: (() => string) | undefined;
  readonly #server = createServer((request, response) => {
    const offer = this.#take(request);
    response
      .writeHead(offer === undefined ? 404 : 400)
      .end(offer && 'streams need an upgrade to a WebSocket or to SPDY/3.1\n');
  });
  readonly #offers = new Map<string, StreamOffer>();
  readonly #sockets = new Set<Duplex>();
  #listening: Promise<Server> | undefined;
  #closed = false;

  constructor({ clock = systemClock, origin }: StreamServerOptions = {}) {
    this.#clock = clock;
    this.#origin = origin;
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
  }

  /** Takes a connection that came in elsewhere. */
  connected(socket: Socket): void {
    this.#server.emit('connection', socket);
  }

  /** The address at which the stream is to be had. @throws `Unavailable` */
  async offer(offer: StreamOffer): Promise<string> {
    if (this.#closed) throw new RuntimeError('Unavailable', 'the service ends');
    if (this.#offers.size >= maxTokens)
      throw new RuntimeError('Unavailable', 'too many streams were asked for and not used');
    const origin = await this.#place();
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

  async #place(): Promise<string> {
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
    const offer = this.#take(incoming);
    if (offer === undefined) {
      refuse(socket, new UpgradeRefused(404, 'there is no such stream'));
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

  /** A token is used up by whatever is done with it. */
  #take({ url = '' }: IncomingMessage): StreamOffer | undefined {
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
