import { connect, type Socket } from 'node:net';

/** A client that opens a watch and then reads next to nothing of it. */
export class SlowWatcher {
  readonly #socket: Socket;
  readonly #timer: NodeJS.Timeout | undefined;
  bytes = 0;

  /** @param bytesPerSecond 0 = it never reads at all. */
  constructor(url: string, bytesPerSecond: number) {
    const { hostname, port, pathname, search, host } = new URL(url);
    this.#socket = connect({ host: hostname, port: Number(port) });
    this.#socket.on('error', () => {});
    this.#socket.pause();
    this.#socket.write(`GET ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    if (bytesPerSecond > 0) {
      this.#timer = setInterval(() => {
        this.bytes += (this.#socket.read(bytesPerSecond) as Buffer | null)?.length ?? 0;
      }, 1000);
    }
  }

  close(): void {
    clearInterval(this.#timer);
    this.#socket.destroy();
  }
}
