import type { Socket } from 'node:net';
import { PassThrough, Writable } from 'node:stream';
import type { ProcessStreams, StreamRequest } from '@keelson/container-runtime';
import { splitFrames } from './frames.ts';
import { into } from './into.ts';

interface Listener {
  readonly stdout: PassThrough | undefined;
  readonly stderr: PassThrough | undefined;
  release(): void;
}

/**
 * The one connection to the ends of a container, shared by all who attach. It stays when they go: Podman takes the end
 * of any connection for the end of the container's standard input.
 */
export class AttachHub {
  readonly #socket: Socket;
  readonly #tty: boolean;
  readonly #stdinOnce: boolean;
  readonly #listeners = new Set<Listener>();
  /** Resolves when the container has let go. */
  readonly closed: Promise<void>;

  constructor(socket: Socket, tty: boolean, stdinOnce: boolean) {
    this.#socket = socket;
    this.#tty = tty;
    this.#stdinOnce = stdinOnce;
    this.closed = splitFrames(socket, tty, (stream, data) => {
      const waits = [...this.#listeners]
        .map((listener) => into(listener[stream], data))
        .filter((wait) => wait !== undefined);
      return waits.length === 0 ? undefined : Promise.all(waits).then(() => {});
    });
    void this.closed.then(() => {
      for (const listener of [...this.#listeners]) listener.release();
    });
  }

  /** `exitCode` is asked for when the container has let go. */
  attach(
    request: StreamRequest,
    exitCode: () => Promise<number>,
    resize: NonNullable<ProcessStreams['resize']>,
  ): ProcessStreams {
    const stdin = request.stdin ? this.#input() : undefined;
    const stdout = request.stdout ? new PassThrough() : undefined;
    const stderr = request.stderr && !this.#tty ? new PassThrough() : undefined;
    let letGo = () => {};
    const released = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const listener: Listener = {
      ...{ stdout, stderr },
      release: () => {
        this.#listeners.delete(listener);
        stdout?.end();
        stderr?.end();
        letGo();
      },
    };
    this.#listeners.add(listener);
    return {
      ...(stdin && { stdin }),
      ...(stdout && { stdout }),
      ...(stderr && { stderr }),
      ...(this.#tty && { resize }),
      ended: released.then(exitCode).then((code) => ({ exitCode: code })),
      close: () => {
        listener.release();
        stdout?.destroy();
        stderr?.destroy();
        stdin?.destroy();
      },
    };
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Its end is end of file for the container only when that was asked for. */
  #input(): Writable {
    let used = false;
    const socket = this.#socket;
    const finish = () => {
      if (this.#stdinOnce && used && !socket.writableEnded) socket.end();
    };
    return new Writable({
      write: (chunk: Buffer, _encoding, callback) => {
        used = true;
        if (socket.destroyed) callback();
        else socket.write(chunk, () => callback());
      },
      final: (callback) => {
        used = true;
        finish();
        callback();
      },
      destroy: (error, callback) => {
        finish();
        callback(error);
      },
    });
  }
}
