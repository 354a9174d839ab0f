import type { Duplex } from 'node:stream';
import { joinPort } from './join-port.ts';
import { messageOf } from './serve-process.ts';
import { SpdyConnection, type SpdyOptions } from './spdy/spdy-connection.ts';
import type { SpdyStream } from './spdy/spdy-stream.ts';

/** Maximum time between the two streams of a pair. */
const pairWithinMs = 30_000;
const highestPort = 65_535;

export interface PortSource {
  /** Name of the pod in error messages about ports. */
  readonly label: string;
  readonly open: (port: number) => Promise<Duplex>;
}

/** The error of a port, in the form of the kubelet, which kubectl prints. */
export const portProblem = (port: number, label: string, error: unknown): string =>
  `error forwarding port ${port} to ${label}: ${messageOf(error)}`;

interface Pair {
  readonly port: number;
  data?: SpdyStream;
  error?: SpdyStream;
  cancel: () => void;
}

/**
 * Serves any number of connections to ports over one SPDY connection. Each is a pair of streams with the same
 * `requestID`: `data`, and `error` for an error message.
 */
export function serveSpdyPorts(options: Omit<SpdyOptions, 'onStream'>, source: PortSource): SpdyConnection {
  const pairs = new Map<string, Pair>();
  const onStream = (stream: SpdyStream) => {
    const type = stream.headers.get('streamtype');
    const port = portOf(stream.headers.get('port'));
    if (type !== 'data' && type !== 'error') throw new Error('a stream for a port has the type data or error');
    const id = stream.headers.get('requestid') ?? requestOf(stream.id, type);
    const pair = pairs.get(id) ?? newPair(id, port);
    if (pair[type] !== undefined || pair.port !== port)
      throw new Error(`request ${id} already has a stream of this type`);
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
  if (port < 1 || port > highestPort) throw new Error(`invalid port ${JSON.stringify(text)}`);
  return port;
}

/** Old clients send no `requestID`, and open the error stream directly before the data stream. */
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
