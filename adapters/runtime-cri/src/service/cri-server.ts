import { Server, type ServerUnaryCall, type ServerWritableStream, type sendUnaryData } from '@grpc/grpc-js';
import { type ContainerEngine, RuntimeError } from '@keelson/container-runtime';
import type { Logger } from '@keelson/core/runtime';
import { pullWithProgressPath } from '../api/image.ts';
import {
  type CallHandler,
  containerHandlers,
  grpcErrorOf,
  imageHandlers,
  pullSteps,
  runtimeHandlers,
  sandboxHandlers,
} from './handlers.ts';
import { type StreamServer, streamHandlers } from './stream-handlers.ts';
import { eventMessages } from './to-cri.ts';

/** Time that pending calls have to complete when the service shuts down. */
const shutdownGraceMs = 1000;
/** Limit of a request; configurations of pods are far smaller. */
const maxRequestBytes = 16 * 1024 * 1024;

const asIs = (bytes: Buffer): Buffer => bytes;

/** A gRPC server for the calls of CRI, without a listener. */
export interface CriServer {
  readonly grpc: Server;
  /** Ends all event streams and all pulls that report progress. */
  endStreams(): void;
  /** Shuts the server down after a grace period for pending calls. */
  shutDown(): Promise<void>;
}

/** Creates a server that handles the calls of CRI with an engine. The caller connects it to a listener. */
export function createCriServer({
  engine,
  streams,
  logger,
}: {
  engine: ContainerEngine;
  streams: StreamServer;
  logger: Logger;
}): CriServer {
  const grpc = new Server({ 'grpc.max_receive_message_length': maxRequestBytes });
  const { runtime, images } = engine;
  const handlers = [
    ...runtimeHandlers(runtime),
    ...sandboxHandlers(runtime),
    ...containerHandlers(runtime),
    ...imageHandlers(images),
    ...streamHandlers(runtime, streams),
  ];
  for (const handler of handlers) {
    const handle = (call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>) =>
      reply(handler, call, done, logger);
    grpc.register(`/runtime.v1.${handler.service}/${handler.name}`, handle, asIs, asIs, 'unary');
  }
  const ending = new AbortController();
  const stream = (path: string, messages: Messages) => {
    const handle = (call: ServerWritableStream<Buffer, Buffer>) => void sendAll(call, messages, ending.signal);
    grpc.register(path, handle, asIs, asIs, 'serverStream');
  };
  stream('/runtime.v1.RuntimeService/GetContainerEvents', (_, signal) => eventMessages(runtime, signal));
  stream(pullWithProgressPath, (request, signal) => pullSteps(images, request, signal));
  return { grpc, endStreams: () => ending.abort(), shutDown: () => shutDown(grpc) };
}

function reply(
  handler: CallHandler,
  call: ServerUnaryCall<Buffer, Buffer>,
  done: sendUnaryData<Buffer>,
  logger: Logger,
): void {
  const cancelled = new AbortController();
  call.once('cancelled', () => cancelled.abort(new RuntimeError('Aborted', 'the caller gave up')));
  handler.reply(call.request, cancelled.signal).then(
    (bytes) => done(null, bytes),
    (error: unknown) => {
      const failure = grpcErrorOf(error);
      logger.debug('call failed', { call: handler.name, reason: failure.details });
      done(failure);
    },
  );
}

/** The messages of a stream to one client. */
type Messages = (request: Buffer, signal: AbortSignal) => AsyncIterable<Buffer>;

/** Sends all messages; ends early when the client cancels the call or the service shuts down. */
async function sendAll(
  call: ServerWritableStream<Buffer, Buffer>,
  messages: Messages,
  ending: AbortSignal,
): Promise<void> {
  const cancelled = new AbortController();
  call.once('cancelled', () => cancelled.abort());
  try {
    for await (const bytes of messages(call.request, AbortSignal.any([cancelled.signal, ending]))) {
      if (!call.write(bytes)) await drained(call, cancelled.signal);
    }
    call.end();
  } catch (error) {
    call.emit('error', grpcErrorOf(error));
  }
}

/**
 * Resolves when the client has read the sent messages. A slow client delays only its own stream: the engine replaces
 * undelivered events by one `resync`.
 */
function drained(call: ServerWritableStream<Buffer, Buffer>, cancelled: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      call.off('drain', done);
      cancelled.removeEventListener('abort', done);
      resolve();
    };
    call.once('drain', done);
    cancelled.addEventListener('abort', done);
    if (cancelled.aborted) done();
  });
}

function shutDown(server: Server): Promise<void> {
  return new Promise((resolve) => {
    // Not injected: the deadline of a shutdown, which the clock of a test would stop.
    const force = setTimeout(() => server.forceShutdown(), shutdownGraceMs);
    server.tryShutdown(() => {
      clearTimeout(force);
      resolve();
    });
  });
}
