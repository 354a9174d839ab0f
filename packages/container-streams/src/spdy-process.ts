import type { Readable, Writable } from 'node:stream';
import type { StreamRequest, TerminalSize } from '@keelson/container-runtime';
import { endMessage, type ProcessEnd, type ProtocolVersion, type RemoteProcess } from './remote-process.ts';
import { SpdyConnection, type SpdyOptions } from './spdy/spdy-connection.ts';
import type { SpdyStream } from './spdy/spdy-stream.ts';
import type { Watchable } from './stream-limits.ts';
import { TerminalSizes } from './terminal-sizes.ts';

/** Maximum time in which a client opens its streams. */
const streamsWithinMs = 30_000;
/** The first version in which clients send the size of their terminal. */
const firstWithSizes = 3;

/** A connection for one process. */
export interface SpdyProcess extends Watchable {
  /**
   * The process, once the client has opened all requested streams; undefined when it did not open them in time, and the
   * connection was closed.
   */
  readonly process: Promise<RemoteProcess | undefined>;
}

/** Waits until a client has opened all requested streams, which the header `streamtype` identifies. */
export function spdyProcess(
  options: Omit<SpdyOptions, 'onStream'>,
  version: ProtocolVersion,
  request: StreamRequest,
): SpdyProcess {
  const wanted = new Set(['error']);
  for (const name of ['stdin', 'stdout', 'stderr'] as const) if (request[name]) wanted.add(name);
  if (request.tty && version >= firstWithSizes) wanted.add('resize');
  const streams = new Map<string, SpdyStream>();
  let whenComplete: () => void = () => {};
  const complete = new Promise<void>((resolve) => {
    whenComplete = resolve;
  });
  const connection = new SpdyConnection({
    ...options,
    onStream: (stream) => {
      const type = stream.headers.get('streamtype') ?? '';
      if (!wanted.delete(type)) throw new Error(`unexpected stream of type ${JSON.stringify(type)}`);
      streams.set(type, stream);
      if (wanted.size === 0) whenComplete();
    },
  });
  const cancel = options.clock.after(streamsWithinMs, () => connection.destroy());
  const process = Promise.race([complete.then(() => true), connection.closed.then(() => false)]).then((isComplete) => {
    cancel();
    return isComplete ? new ProcessOverStreams(connection, version, streams) : undefined;
  });
  return { ping: () => connection.ping(), closed: connection.closed, process };
}

class ProcessOverStreams implements RemoteProcess {
  readonly stdin?: Readable;
  readonly stdout?: Writable;
  readonly stderr?: Writable;
  readonly closed: Promise<void>;
  readonly #connection: SpdyConnection;
  readonly #version: ProtocolVersion;
  readonly #error: SpdyStream | undefined;
  readonly #sizes = new TerminalSizes();

  constructor(connection: SpdyConnection, version: ProtocolVersion, streams: ReadonlyMap<string, SpdyStream>) {
    this.#connection = connection;
    this.#version = version;
    this.#error = streams.get('error');
    this.closed = connection.closed;
    const [stdin, stdout, stderr] = ['stdin', 'stdout', 'stderr'].map((name) => streams.get(name));
    if (stdin !== undefined) this.stdin = stdin;
    if (stdout !== undefined) this.stdout = stdout;
    if (stderr !== undefined) this.stderr = stderr;
    for (const [type, stream] of streams) {
      if (type === 'resize') stream.on('data', (chunk: Buffer) => this.#sizes.receive(chunk));
      // Data that the client sends on output streams is discarded.
      else if (type !== 'stdin') stream.resume();
    }
  }

  onResize(resize: (size: TerminalSize) => void): void {
    this.#sizes.listen(resize);
  }

  async finish(end: ProcessEnd): Promise<void> {
    this.#error?.end(endMessage(this.#version, end));
    // Further input is discarded, so that it does not delay the end of the connection.
    this.stdin?.resume();
    await this.#connection.close();
  }
}
