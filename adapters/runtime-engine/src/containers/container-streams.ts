import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  type ContainerId,
  type ProcessStreams,
  RuntimeError,
  type SandboxId,
  type StreamRequest,
} from '@keelson/container-runtime';
import type { EngineSandboxes } from '../sandboxes/engine-sandboxes.ts';
import { AttachHub } from '../streams/attach-hub.ts';
import { forwardPort } from '../streams/port-forward.ts';
import type { Surroundings } from '../surroundings.ts';
import type { ContainerReader } from './container-reader.ts';
import type { ContainerWaits } from './container-waits.ts';

/** How long the end of a container may take to be known after it has let go of its streams. */
const endLimitMs = 2_000;

/** Attached streams and forwarded ports. */
export class ContainerStreams {
  readonly #around: Surroundings;
  readonly #reader: ContainerReader;
  readonly #waits: ContainerWaits;
  readonly #sandboxes: EngineSandboxes;
  readonly #hubs = new Map<ContainerId, Promise<AttachHub>>();

  constructor(around: Surroundings, reader: ContainerReader, waits: ContainerWaits, sandboxes: EngineSandboxes) {
    this.#around = around;
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
    return record.namespaces.network === 'node' ? connectHere(port) : forwardPort(details.State.Pid, port, signal);
  }

  close(): void {
    for (const hub of this.#hubs.values()) {
      hub.then(
        (open) => open.close(),
        () => {},
      );
    }
  }

  #hub(id: ContainerId, has: { stdin: boolean; stdinOnce: boolean; tty: boolean }): Promise<AttachHub> {
    const known = this.#hubs.get(id);
    if (known !== undefined) return known;
    const query = { stream: true, stdin: has.stdin, stdout: true, stderr: !has.tty };
    const opening = this.#around.http
      .hijack(`/containers/${id}/attach`, { query })
      .then((socket) => new AttachHub(socket, has.tty, has.stdinOnce));
    this.#hubs.set(id, opening);
    const forget = () => void this.#hubs.delete(id);
    opening.then((hub) => hub.closed).then(forget, forget);
    return opening;
  }

  async #resize(id: ContainerId, width: number, height: number): Promise<void> {
    const query = { w: width, h: height };
    await this.#around.http.json('POST', `/containers/${id}/resize`, { query }).catch((err: unknown) => {
      this.#around.logger.debug('cannot resize a terminal', { container: id, err });
    });
  }

  async #exitCode(id: ContainerId): Promise<number> {
    const look = async () => (await this.#reader.lookFor(id))?.state !== 'running';
    try {
      if (!(await this.#waits.until(id, look, endLimitMs, undefined))) return 0;
      return (await this.#reader.status(id)).exitCode ?? 0;
    } catch {
      return 0;
    }
  }
}

function connectHere(port: number): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.once('connect', () => resolve(socket));
    socket.once('error', (cause) =>
      reject(new RuntimeError('Unavailable', `cannot connect to port ${port} of the pod`, { cause })),
    );
  });
}
