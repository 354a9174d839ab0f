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

/** Returns the status of a container after its streams ended; undefined when the container has not exited. */
export type EndOfContainer = (id: ContainerId, signal?: AbortSignal) => Promise<ContainerStatus | undefined>;

/**
 * Runs commands with streams, attaches to containers and forwards ports. The daemon responds to a call with a URL of
 * its streaming server, which is valid for one connection. The transport is a WebSocket. When one direction must end
 * before the other and the server's WebSockets do not support that, the transport is SPDY if the server supports it.
 */
export class StreamingCalls implements Required<RuntimeStreaming> {
  readonly #connection: CriConnection;
  readonly #endOfContainer: EndOfContainer;
  #webSocketHalfCloses = false;
  #supportsSpdy = true;

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
    // With WebSocket protocols before v5, containerd closes a session that has a terminal but no standard input.
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
      if (bySpdy !== undefined && this.#supportsSpdy) {
        try {
          return await bySpdy((await url()) ?? '');
        } catch (error) {
          if (!(error instanceof UpgradeRefused)) throw error;
          this.#supportsSpdy = false;
        }
      }
      return await byWebSocket((await url()) ?? '');
    } catch (error) {
      if (isRuntimeError(error)) throw error;
      if (signal?.aborted) throw new RuntimeError('Aborted', 'the caller gave up', { cause: signal.reason });
      const reason = error instanceof Error ? error.message : String(error);
      throw new RuntimeError('Unavailable', `cannot open a stream of the streaming server: ${reason}`, {
        cause: error,
      });
    }
  }
}
