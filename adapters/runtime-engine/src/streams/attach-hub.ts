import type { Socket } from 'node:net';
import { PassThrough, Writable } from 'node:stream';
import type { ProcessStreams, StreamRequest } from '@keelson/container-runtime';
import { splitFrames } from './frames.ts';
import { writeTo } from './write-to.ts';

interface Listener {
  readonly stdout: PassThrough | undefined;
  readonly stderr: PassThrough | undefined;
  release(): void;
}

/**
 * The one connection to the streams of a container, shared by all attached clients. It stays open when clients
 * disconnect, because Podman closes the container's standard input at the end of any connection.
 */
export class AttachHub {
  readonly #socket: Socket;
  readonly #tty: boolean;
  readonly #stdinOnce: boolean;
  readonly #listeners = new Set<Listener>();
  /** Resolves when the streams of the container have ended. */
  readonly closed: Promise<void>;

  constructor(socket: Socket, tty: boolean, stdinOnce: boolean) {
    this.#socket = socket;
    this.#tty = tty;
    this.#stdinOnce = stdinOnce;
    this.closed = splitFrames(socket, tty, (stream, data) => {
      const waits = [...this.#listeners]
        .map((listener) => writeTo(listener[stream], data))
        .filter((wait) => wait !== undefined);
      return waits.length === 0 ? undefined : Promise.all(waits).then(() => {});
    });
    void this.closed.then(() => {
      for (const listener of [...this.#listeners]) listener.release();
    });
  }

  /** `exitCode` is called when the streams of the container have ended. */
  attach(
    request: StreamRequest,
    exitCode: () => Promise<number>,
    resize: NonNullable<ProcessStreams['resize']>,
  ): ProcessStreams {
    const stdin = request.stdin ? this.#input() : undefined;
    const stdout = request.stdout ? new PassThrough() : undefined;
    const stderr = request.stderr && !this.#tty ? new PassThrough() : undefined;
    let markReleased = () => {};
    const released = new Promise<void>((resolve) => {
      markReleased = resolve;
    });
    const listener: Listener = {
      ...{ stdout, stderr },
      release: () => {
        this.#listeners.delete(listener);
        stdout?.end();
        stderr?.end();
        markReleased();
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

  /** The end of this stream closes the container's standard input only when `stdinOnce` is set. */
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
