import { connect } from 'node:http2';

export interface GrpcTarget {
  readonly host: string;
  readonly port: number;
  /** The service whose health is asked for; empty for that of the server. */
  readonly service: string;
}

const servingStates = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];
const unimplemented = '12';
const serving = 1;
/** Bytes of a frame before its message: a flag of compression and the length. */
const frameHeadBytes = 5;
const maxAnswerBytes = 10_240;

/**
 * Calls `grpc.health.v1.Health/Check` without encryption.
 * @throws unless the answer is `SERVING`
 */
export async function grpcCheck({ host, port, service }: GrpcTarget, signal: AbortSignal): Promise<void> {
  const { status, message, state } = await call(host, port, healthRequest(service), signal);
  if (status === unimplemented) throw new Error('the server does not implement the health service of gRPC');
  if (status !== '0') throw new Error(`the health service of gRPC answered with status ${status}: ${message}`);
  if (state !== serving) throw new Error(`service unhealthy (responded with "${servingStates[state] ?? state}")`);
}

interface Answer {
  readonly status: string;
  readonly message: string;
  readonly state: number;
}

function call(host: string, port: number, body: Buffer, signal: AbortSignal): Promise<Answer> {
  signal.throwIfAborted();
  return new Promise<Answer>((resolve, reject) => {
    const session = connect(`http://${host.includes(':') ? `[${host}]` : host}:${port}`);
    const abort = () => session.destroy(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
    signal.addEventListener('abort', abort, { once: true });
    const fail = (error: Error) => {
      reject(error);
      session.destroy();
    };
    session.on('error', fail);
    session.on('close', () => {
      signal.removeEventListener('abort', abort);
      reject(new Error('the connection was closed before the answer'));
    });
    const request = session.request({
      ':method': 'POST',
      ':path': '/grpc.health.v1.Health/Check',
      'content-type': 'application/grpc',
      te: 'trailers',
      'user-agent': 'keelson-agent-probe',
    });
    const chunks: Buffer[] = [];
    let size = 0;
    let status: string | undefined;
    let message = '';
    // The status is in the trailers, or in the only headers of an answer without a message.
    const readStatus = (headers: Readonly<Record<string, unknown>>) => {
      if (headers['grpc-status'] === undefined) return;
      status = String(headers['grpc-status']);
      message = String(headers['grpc-message'] ?? '');
    };
    request.on('response', (headers) => {
      if (headers[':status'] === 200) readStatus(headers);
      else fail(new Error(`the answer has the HTTP status ${headers[':status']}`));
    });
    request.on('trailers', readStatus);
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxAnswerBytes) fail(new Error('the answer is too long'));
      else chunks.push(chunk);
    });
    request.on('error', fail);
    request.on('end', () => {
      if (status === undefined) return fail(new Error('the answer is not one of gRPC'));
      resolve({ status, message, state: stateOf(Buffer.concat(chunks).subarray(frameHeadBytes)) });
      session.close();
    });
    request.end(body);
  });
}

/** A frame with `HealthCheckRequest`, whose field 1 is the service. */
function healthRequest(service: string): Buffer {
  const name = Buffer.from(service);
  const message = name.length === 0 ? name : Buffer.concat([Buffer.from([0x0a, ...varint(name.length)]), name]);
  const head = Buffer.alloc(frameHeadBytes);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)];
}

/** Field 1 of a `HealthCheckResponse`, which has no other; 0 if it is absent. */
function stateOf(message: Buffer): number {
  return message[0] === 0x08 ? (message[1] ?? 0) : 0;
}
