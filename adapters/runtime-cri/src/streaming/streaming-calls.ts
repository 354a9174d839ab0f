import type { Duplex } from 'node:stream';
import {
  type CallOptions,
  type ContainerId,
  type ContainerStatus,
  type ExecRequest,
  isRuntimeError,
  type ProcessStreams,
  RuntimeError,
  type RuntimeStreaming,
  type SandboxId,
  type StreamRequest,
} from '@keelson/container-runtime';
import { Calls } from '../api/calls.ts';
import type { CriConnection } from '../connection/cri-connection.ts';
import { forwardBySpdy, forwardByWebSocket } from './port-forward.ts';
import { toProcessStreams } from './process-streams.ts';
import type { RemoteSession } from './remote-session.ts';
import { UpgradeRefused } from './spdy-connection.ts';
import { openSpdySession } from './spdy-session.ts';
import { openWebSocketSession } from './websocket-session.ts';

/** What happens when a stream of `attach` ends: the container's end, if it ended. */
export type EndOfContainer = (id: ContainerId, signal?: AbortSignal) => Promise<ContainerStatus | undefined>;

/**
 * Commands, attached streams and connections to ports. The daemon answers a call with the URL of its streaming server,
 * good for one use. Streams are carried by WebSockets, except where one direction has to end before the other and the
 * server's WebSockets cannot tell that: those are carried by SPDY, and only a server that has no SPDY gets a WebSocket
 * for them.
 */
export class StreamingCalls implements Required<RuntimeStreaming> {
  readonly #connection: CriConnection;
  readonly #endOfContainer: EndOfContainer;
  #webSocketHalfCloses = false;
  #speaksSpdy = true;

  constructor(connection: CriConnection, endOfContainer: EndOfContainer) {
    this.#connection = connection;
    this.#endOfContainer = endOfContainer;
  }

  async exec(id: ContainerId, request: ExecRequest, { signal }: CallOptions = {}): Promise<ProcessStreams> {
    const { command, ...streams } = request;
    const message = { containerId: id, cmd: command, ...streams };
    const url = async () => (await this.#connection.call(Calls.exec, message, signal)).url;
    const session = await this.#session(url, request, signal);
    return toProcessStreams(session, request, async (end) => end);
  }

  async attach(id: ContainerId, request: StreamRequest, { signal }: CallOptions = {}): Promise<ProcessStreams> {
    const { stdin, stdout, stderr, tty } = request;
    const message = { containerId: id, stdin, stdout, stderr, tty };
    const url = async () => (await this.#connection.call(Calls.attach, message, signal)).url;
    const session = await this.#session(url, request, signal);
    return toProcessStreams(session, request, async () => {
      const status = await this.#endOfContainer(id);
      return status?.exitCode === undefined ? undefined : { exitCode: status.exitCode };
    });
  }

  async portForward(id: SandboxId, port: number, { signal }: CallOptions = {}): Promise<Duplex> {
    const url = async () =>
      (await this.#connection.call(Calls.portForward, { podSandboxId: id, port: [port] }, signal)).url;
    return this.#upgraded(
      url,
      (address) => forwardBySpdy(address, port, signal, this.#connection.tls),
      (address) => forwardByWebSocket(address, port, signal, this.#connection.tls),
      signal,
    );
  }

  #session(
    url: () => Promise<string | undefined>,
    request: StreamRequest,
    signal: AbortSignal | undefined,
  ): Promise<RemoteSession> {
    const byWebSocket = async (address: string) => {
      const { session, halfCloses } = await openWebSocketSession(address, request, signal, this.#connection.tls);
      this.#webSocketHalfCloses = halfCloses;
      return session;
    };
    const bySpdy = (address: string) => openSpdySession(address, request, signal, this.#connection.tls);
    // Over the older WebSockets containerd closes a terminal whose input nobody asked for.
    const needsSpdy = (request.stdin || request.tty) && !this.#webSocketHalfCloses;
    return this.#upgraded(url, needsSpdy ? bySpdy : undefined, byWebSocket, signal);
  }

  async #upgraded<T>(
    url: () => Promise<string | undefined>,
    bySpdy: ((url: string) => Promise<T>) | undefined,
    byWebSocket: (url: string) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    try {
      if (bySpdy !== undefined && this.#speaksSpdy) {
        try {
          return await bySpdy((await url()) ?? '');
        } catch (error) {
          if (!(error instanceof UpgradeRefused)) throw error;
          this.#speaksSpdy = false;
        }
      }
      return await byWebSocket((await url()) ?? '');
    } catch (error) {
      if (isRuntimeError(error)) throw error;
      if (signal?.aborted) throw new RuntimeError('Aborted', 'the caller gave up', { cause: signal.reason });
      const reason = error instanceof Error ? error.message : String(error);
      throw new RuntimeError('Unavailable', `the streaming server did not answer: ${reason}`, { cause: error });
    }
  }
}
