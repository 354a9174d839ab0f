import type { Duplex } from 'node:stream';
import { joinPort } from './join-port.ts';
import { messageOf } from './serve-process.ts';
import { SpdyConnection, type SpdyOptions } from './spdy/spdy-connection.ts';
import type { SpdyStream } from './spdy/spdy-stream.ts';

/** How long the second stream of a pair may take. */
const pairWithinMs = 30_000;
const highestPort = 65_535;

export interface PortSource {
  /** What a caller is told the pod is, when a port cannot be reached. */
  readonly label: string;
  readonly open: (port: number) => Promise<Duplex>;
}

/** Why nothing comes from a port, in the words that kubectl shows. */
export const portProblem = (port: number, label: string, error: unknown): string =>
  `error forwarding port ${port} to ${label}: ${messageOf(error)}`;

interface Pair {
  readonly port: number;
  data?: SpdyStream;
  error?: SpdyStream;
  cancel: () => void;
}

/**
 * Serves connections to ports over SPDY, any number of them over one connection: each is a pair of streams of one
 * `requestID`, for `data` and for the `error` that there may be.
 */
export function serveSpdyPorts(options: Omit<SpdyOptions, 'onStream'>, source: PortSource): SpdyConnection {
  const pairs = new Map<string, Pair>();
  const onStream = (stream: SpdyStream) => {
    const type = stream.headers.get('streamtype');
    const port = portOf(stream.headers.get('port'));
    if (type !== 'data' && type !== 'error') throw new Error('a stream for a port has the type data or error');
    const id = stream.headers.get('requestid') ?? requestOf(stream.id, type);
    const pair = pairs.get(id) ?? newPair(id, port);
    if (pair[type] !== undefined || pair.port !== port) throw new Error(`request ${id} has such a stream already`);
    pair[type] = stream;
    if (pair.data === undefined || pair.error === undefined) return;
    pairs.delete(id);
    pair.cancel();
    void serve(pair.port, pair.data, pair.error, source);
  };
  const newPair = (id: string, port: number): Pair => {
    const onLate = () => {
      pairs.delete(id);
      pair.error?.end('timed out waiting for the other stream of the request');
      pair.error?.resume();
      pair.data?.destroy();
    };
    const pair: Pair = { port, cancel: options.clock.after(pairWithinMs, onLate) };
    pairs.set(id, pair);
    return pair;
  };
  const connection = new SpdyConnection({ ...options, onStream });
  void connection.closed.then(() => {
    for (const { cancel } of pairs.values()) cancel();
  });
  return connection;
}

function portOf(text = ''): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > highestPort) throw new Error(`${JSON.stringify(text)} is no port`);
  return port;
}

/** Callers of old open the error stream first, and say nothing of requests. */
const requestOf = (streamId: number, type: 'data' | 'error'): string =>
  String(type === 'error' ? streamId : streamId - 2);

async function serve(port: number, data: SpdyStream, error: SpdyStream, { label, open }: PortSource): Promise<void> {
  error.resume();
  try {
    await joinPort(data, await open(port));
    error.end();
  } catch (problem) {
    error.end(portProblem(port, label, problem));
    data.end();
    data.resume();
  }
}
