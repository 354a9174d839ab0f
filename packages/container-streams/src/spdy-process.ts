import type { Readable, Writable } from 'node:stream';
import type { StreamRequest, TerminalSize } from '@keelson/container-runtime';
import { endMessage, type ProcessEnd, type ProtocolVersion, type RemoteProcess } from './remote-process.ts';
import { SpdyConnection, type SpdyOptions } from './spdy/spdy-connection.ts';
import type { SpdyStream } from './spdy/spdy-stream.ts';
import type { Watchable } from './stream-limits.ts';
import { TerminalSizes } from './terminal-sizes.ts';

/** How long a caller may take to open its streams. */
const streamsWithinMs = 30_000;
/** The first version whose callers tell of the sizes of their terminals. */
const firstWithSizes = 3;

/** A connection over which a process is to be served. */
export interface SpdyProcess extends Watchable {
  /**
   * The process, once the caller has opened a stream for each thing it asked for; undefined when it did not, and was
   * let go.
   */
  readonly process: Promise<RemoteProcess | undefined>;
}

/** Awaits the streams of a caller, which are told apart by their header `streamtype`. */
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
      if (!wanted.delete(type)) throw new Error(`a stream of type ${JSON.stringify(type)} is not wanted`);
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
      if (type === 'resize') stream.on('data', (chunk: Buffer) => this.#sizes.take(chunk));
      // Whatever a caller says where it should only listen.
      else if (type !== 'stdin') stream.resume();
    }
  }

  onResize(take: (size: TerminalSize) => void): void {
    this.#sizes.listen(take);
  }

  async finish(end: ProcessEnd): Promise<void> {
    this.#error?.end(endMessage(this.#version, end));
    // What still comes for the process is no longer of interest, and must not hold up the end.
    this.stdin?.resume();
    await this.#connection.close();
  }
}
