import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  type ContainerId,
  type ProcessStreams,
  RuntimeError,
  type SandboxId,
  type StreamRequest,
} from '@keelson/container-runtime';
import type { ContainerReader } from '../containers/container-reader.ts';
import type { ContainerWaits } from '../containers/container-waits.ts';
import type { EngineContext } from '../containers/engine-context.ts';
import type { EngineSandboxes } from '../sandboxes/engine-sandboxes.ts';
import { AttachHub } from './attach-hub.ts';
import { forwardPort } from './port-forward.ts';

/** Longest time between the end of a container's streams and the report of its exit. */
const endLimitMs = 2_000;

/** Attaches to containers and forwards ports. */
export class ContainerStreams {
  readonly #context: EngineContext;
  readonly #reader: ContainerReader;
  readonly #waits: ContainerWaits;
  readonly #sandboxes: EngineSandboxes;
  readonly #hubs = new Map<ContainerId, Promise<AttachHub>>();

  constructor(context: EngineContext, reader: ContainerReader, waits: ContainerWaits, sandboxes: EngineSandboxes) {
    this.#context = context;
    this.#reader = reader;
    this.#waits = waits;
    this.#sandboxes = sandboxes;
  }

  async attach(id: ContainerId, request: StreamRequest, signal?: AbortSignal): Promise<ProcessStreams> {
    const { record, state } = await this.#reader.find(id, signal);
    const { stdin = false, stdinOnce = false, tty = false } = record.config;
    if (state !== 'running') throw new RuntimeError('InvalidState', `container "${id}" is ${state}, not running`);
    if (request.stdin && !stdin)
      throw new RuntimeError('InvalidState', `container "${id}" does not keep its standard input open`);
    const hub = await this.#hub(id, { stdin, stdinOnce, tty });
    return hub.attach(
      request,
      () => this.#exitCode(id),
      ({ width, height }) => void this.#resize(id, width, height),
    );
  }

  async portForward(id: SandboxId, port: number, signal?: AbortSignal): Promise<Duplex> {
    const { details, record } = await this.#sandboxes.findReady(id, signal);
    return record.namespaces.network === 'node' ? connectLoopback(port) : forwardPort(details.State.Pid, port, signal);
  }

  close(): void {
    for (const hub of this.#hubs.values()) {
      hub.then(
        (open) => open.close(),
        () => {},
      );
    }
  }

  #hub(id: ContainerId, config: { stdin: boolean; stdinOnce: boolean; tty: boolean }): Promise<AttachHub> {
    const existing = this.#hubs.get(id);
    if (existing !== undefined) return existing;
    const query = { stream: true, stdin: config.stdin, stdout: true, stderr: !config.tty };
    const opening = this.#context.http
      .hijack(`/containers/${id}/attach`, { query })
      .then((socket) => new AttachHub(socket, config.tty, config.stdinOnce));
    this.#hubs.set(id, opening);
    const forget = () => void this.#hubs.delete(id);
    opening.then((hub) => hub.closed).then(forget, forget);
    return opening;
  }

  async #resize(id: ContainerId, width: number, height: number): Promise<void> {
    const query = { w: width, h: height };
    await this.#context.http.json('POST', `/containers/${id}/resize`, { query }).catch((err: unknown) => {
      this.#context.logger.debug('cannot resize a terminal', { container: id, err });
    });
  }

  async #exitCode(id: ContainerId): Promise<number> {
    const hasEnded = async () => (await this.#reader.findIfPresent(id))?.state !== 'running';
    try {
      if (!(await this.#waits.until(id, hasEnded, endLimitMs, undefined))) return 0;
      return (await this.#reader.status(id)).exitCode ?? 0;
    } catch {
      return 0;
    }
  }
}

function connectLoopback(port: number): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.once('connect', () => resolve(socket));
    socket.once('error', (cause) =>
      reject(new RuntimeError('Unavailable', `cannot connect to port ${port} of the pod`, { cause })),
    );
  });
}
