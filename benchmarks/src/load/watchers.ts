import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { Connection } from '@keelson/bench/internal';
import { percentile } from '../measure/statistics.ts';
import { type LoadJob, type LoadResult, numbered } from './protocol.ts';

interface Watcher {
  readonly socket: Socket;
  received: number;
}

/** Open watches of the load process, and the deliveries to them. */
export class Watchers {
  readonly #healthy: Watcher[] = [];
  readonly #stalled: Socket[] = [];
  #wanted = Number.POSITIVE_INFINITY;
  #missing = 0;
  #startedAt = 0;
  #latencies: number[] = [];
  #ended: string | undefined;
  #settle: (problem?: Error) => void = () => {};

  async open(job: Extract<LoadJob, { kind: 'watch' }>): Promise<void> {
    const healthy = Array.from({ length: job.watchers }, () => this.#open(job, (socket) => this.#follow(socket)));
    const stalled = Array.from({ length: job.stalled }, () =>
      this.#open(job, (socket) => {
        socket.pause();
        this.#stalled.push(socket);
      }),
    );
    await Promise.all([...healthy, ...stalled]);
  }

  close(): void {
    for (const { socket } of this.#healthy.splice(0)) socket.removeAllListeners('close').destroy();
    for (const socket of this.#stalled.splice(0)) socket.destroy();
    this.#ended = undefined;
  }

  /** Latencies run from just before the write to the arrival at each watcher. */
  async fanOut(job: Extract<LoadJob, { kind: 'fanOut' }>): Promise<LoadResult> {
    const tls = job.tls ? { tls: { rejectUnauthorized: false } } : {};
    const writers = Array.from({ length: job.burst }, () => new Connection({ port: job.port, ...tls }));
    this.#latencies = [];
    let number = job.firstNumber;
    const rest = stayAwake();
    try {
      for (let event = 0; event < job.events; event += job.burst) {
        const delivered = this.#expect(job.bytes * job.burst);
        const codes = await Promise.all(writers.map((writer) => writer.send(numbered(job.request, number++))));
        const wrong = codes.find((code) => code < 200 || code > 299);
        if (wrong !== undefined) throw new Error(`a write was answered with ${wrong}`);
        await delivered;
      }
    } finally {
      rest();
      for (const writer of writers) writer.close();
    }
    const latencies = this.#latencies;
    return {
      requests: job.events * this.#healthy.length,
      failures: 0,
      nextNumber: number,
      p50Ms: percentile(latencies, 0.5),
      p99Ms: percentile(latencies, 0.99),
    };
  }

  #open(job: Extract<LoadJob, { kind: 'watch' }>, opened: (socket: Socket) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const address = { host: '127.0.0.1', port: job.port };
      const socket = job.tls ? connectTls({ ...address, rejectUnauthorized: false }) : connect(address);
      socket.once('error', reject);
      // The first bytes are the headers; what a watch sends comes later.
      socket.once('data', (head) => {
        const line = head.toString('latin1').split('\r\n')[0] ?? '';
        if (line.includes(' 200 ')) {
          opened(socket);
          resolve();
        } else {
          reject(new Error(`a watch was answered with ${line}`));
        }
      });
      socket.write(job.request);
    });
  }

  #follow(socket: Socket): void {
    const watcher: Watcher = { socket, received: 0 };
    this.#healthy.push(watcher);
    socket.on('data', (chunk) => {
      const before = watcher.received;
      watcher.received += chunk.length;
      if (before >= this.#wanted || watcher.received < this.#wanted) return;
      this.#latencies.push(performance.now() - this.#startedAt);
      this.#missing -= 1;
      if (this.#missing === 0) this.#settle();
    });
    socket.on('close', () => {
      this.#ended = 'a watch ended before it was closed';
      this.#settle(new Error(this.#ended));
    });
  }

  #expect(bytes: number): Promise<void> {
    if (this.#ended !== undefined) return Promise.reject(new Error(this.#ended));
    for (const watcher of this.#healthy) watcher.received = 0;
    this.#wanted = bytes;
    this.#missing = this.#healthy.length;
    this.#startedAt = performance.now();
    return new Promise((resolve, reject) => {
      this.#settle = (problem) => (problem === undefined ? resolve() : reject(problem));
      if (this.#missing === 0) resolve();
    });
  }
}

/**
 * Looks for bytes all the time until the returned function is called. A reader that sleeps in between is woken at the
 * expense of the writer, and the longer a server takes from one write to the next, the more often: the floor would
 * have most of its readers awake.
 */
function stayAwake(): () => void {
  let awake = true;
  const again = () => {
    if (awake) setImmediate(again);
  };
  again();
  return () => {
    awake = false;
  };
}
