import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { percentile } from '../measure/statistics.ts';
import { type LoadJob, type LoadResult, type LoadTarget, numberDigits, numbered } from './protocol.ts';
import { Http2Connection, openSenders, type Sender } from './senders.ts';

interface Watcher {
  /** A connection, or one of the streams of a connection. */
  readonly source: Duplex;
  received: number;
  /** The last bytes of the previous chunk, while a marker is looked for. */
  tail: Buffer;
}

/** Watches that are being opened at the same time: servers reject a thousand of one user. */
const openAtOnce = 16;

/** Requests of a paced job that are under way at the same time at most. */
const pacedSenders = 16;

/** Open watches of the load process, and the deliveries to them. */
export class Watchers {
  readonly #healthy: Watcher[] = [];
  readonly #stalled: Duplex[] = [];
  readonly #connections: Http2Connection[] = [];
  #wanted = Number.POSITIVE_INFINITY;
  #marker: Buffer | undefined;
  #missing = 0;
  #startedAt = 0;
  #latencies: number[] = [];
  #ended: string | undefined;
  #settle: (problem?: Error) => void = () => {};

  async open(job: Extract<LoadJob, { kind: 'watch' }>): Promise<void> {
    const { streams = 1 } = job;
    const connections =
      job.streams === undefined
        ? []
        : Array.from(
            { length: Math.ceil((job.watchers + job.stalled) / streams) },
            () => new Http2Connection(job.port),
          );
    this.#connections.push(...connections);
    const start = (at: number): Promise<Duplex> => {
      const connection = connections[at % connections.length];
      return connection === undefined ? openOnSocket(job) : openOnStream(connection, job.request);
    };
    const all = job.watchers + job.stalled;
    let next = 0;
    const openInTurn = async () => {
      for (let at = next++; at < all; at = next++) {
        const source = await start(at);
        if (at < job.watchers) this.#follow(source);
        else this.#stalled.push(source.pause());
      }
    };
    await Promise.all(Array.from({ length: openAtOnce }, openInTurn));
  }

  close(): void {
    for (const { source } of this.#healthy.splice(0)) source.removeAllListeners('close').destroy();
    for (const source of this.#stalled.splice(0)) source.destroy();
    for (const connection of this.#connections.splice(0)) connection.close();
    this.#ended = undefined;
  }

  /** Latencies run from just before the write to the arrival at each watcher. */
  async fanOut(job: Extract<LoadJob, { kind: 'fanOut' }>): Promise<LoadResult> {
    const writers = openSenders(job, job.burst);
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
      failures: {},
      nextNumber: number,
      p50Ms: percentile(latencies, 0.5),
      p99Ms: percentile(latencies, 0.99),
    };
  }

  /** @throws Error when a write is refused or a watch ends */
  async paced({
    request,
    events,
    perSecond,
    firstNumber,
    ...target
  }: Extract<LoadJob, { kind: 'paced' }>): Promise<LoadResult> {
    const writers = openSenders(target, pacedSenders);
    const free = [...writers];
    let waiting: ((writer: Sender) => void) | undefined;
    const latencies: number[] = [];
    const began = performance.now();
    const write = async (writer: Sender, number: number) => {
      const at = performance.now();
      const code = await writer.send(numbered(request, number));
      latencies.push(performance.now() - at);
      if (code < 200 || code > 299) throw new Error(`a write was answered with ${code}`);
      if (waiting === undefined) free.push(writer);
      else waiting(writer);
    };
    try {
      const writes: Promise<void>[] = [];
      for (let event = 0; event < events; event += 1) {
        const rest = began + (event * 1000) / perSecond - performance.now();
        if (rest > 0) await new Promise((resolve) => setTimeout(resolve, rest));
        const writer =
          free.pop() ??
          (await new Promise<Sender>((resolve) => {
            waiting = resolve;
          }));
        waiting = undefined;
        writes.push(write(writer, firstNumber + event));
        writes.at(-1)?.catch(() => {});
      }
      await Promise.all(writes);
      const last = firstNumber + events;
      const delivered = this.#expectMarker(String(last).padStart(numberDigits, '0'));
      await Promise.all([delivered, write(writers[0] as Sender, last)]);
    } finally {
      this.#marker = undefined;
      for (const writer of writers) writer.close();
    }
    return {
      requests: (events + 1) * this.#healthy.length,
      failures: {},
      nextNumber: firstNumber + events + 1,
      p50Ms: percentile(latencies, 0.5),
      p99Ms: percentile(latencies, 0.99),
    };
  }

  #follow(source: Duplex): void {
    const watcher: Watcher = { source, received: 0, tail: Buffer.alloc(0) };
    this.#healthy.push(watcher);
    source.on('data', (chunk: Buffer) => {
      const before = watcher.received;
      watcher.received += chunk.length;
      if (
        this.#marker === undefined
          ? before >= this.#wanted || watcher.received < this.#wanted
          : !this.#isLast(watcher, chunk)
      )
        return;
      this.#latencies.push(performance.now() - this.#startedAt);
      this.#missing -= 1;
      if (this.#missing === 0) this.#settle();
    });
    source.on('close', () => {
      this.#ended = 'a watch ended before it was closed';
      this.#settle(new Error(this.#ended));
    });
  }

  /** Whether the chunk completes the marker, which may have begun in the chunk before. */
  #isLast(watcher: Watcher, chunk: Buffer): boolean {
    const marker = this.#marker as Buffer;
    const edge = Buffer.concat([watcher.tail, chunk.subarray(0, marker.length - 1)]);
    watcher.tail = Buffer.concat([watcher.tail, chunk.subarray(-(marker.length - 1))]).subarray(-(marker.length - 1));
    return edge.includes(marker) || chunk.includes(marker);
  }

  #expectMarker(text: string): Promise<void> {
    for (const watcher of this.#healthy) watcher.tail = Buffer.alloc(0);
    this.#marker = Buffer.from(text);
    return this.#expectAll();
  }

  #expect(bytes: number): Promise<void> {
    for (const watcher of this.#healthy) watcher.received = 0;
    this.#wanted = bytes;
    return this.#expectAll();
  }

  #expectAll(): Promise<void> {
    if (this.#ended !== undefined) return Promise.reject(new Error(this.#ended));
    this.#missing = this.#healthy.length;
    this.#startedAt = performance.now();
    return new Promise((resolve, reject) => {
      this.#settle = (problem) => (problem === undefined ? resolve() : reject(problem));
      if (this.#missing === 0) resolve();
    });
  }
}

/** Opens a watch on a connection of its own, with HTTP/1.1. */
function openOnSocket({ port, tls, request }: LoadTarget & { readonly request: string }): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const address = { host: '127.0.0.1', port };
    const socket = tls ? connectTls({ ...address, rejectUnauthorized: false }) : connect(address);
    socket.once('error', reject);
    // The first bytes are the headers; what a watch sends comes later.
    socket.once('data', (head) => {
      const line = head.toString('latin1').split('\r\n')[0] ?? '';
      if (line.includes(' 200 ')) resolve(socket);
      else reject(new Error(`a watch was answered with ${line}`));
    });
    socket.write(request);
  });
}

function openOnStream(connection: Http2Connection, request: string): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const stream = connection.open(request);
    stream.once('error', reject);
    stream.once('response', ({ ':status': status }) => {
      if (status === 200) resolve(stream);
      else reject(new Error(`a watch was answered with ${status}`));
    });
  });
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
