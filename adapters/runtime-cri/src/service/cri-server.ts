import { Server, type ServerUnaryCall, type ServerWritableStream, type sendUnaryData } from '@grpc/grpc-js';
import { type ContainerEngine, RuntimeError } from '@keelson/container-runtime';
import type { Logger } from '@keelson/core';
import { pullWithProgress } from '../api/image.ts';
import {
  type Answer,
  containerAnswers,
  imageAnswers,
  pullSteps,
  refusalOf,
  runtimeAnswers,
  sandboxAnswers,
} from './handlers.ts';
import { type StreamServer, streamAnswers } from './stream-handlers.ts';
import { eventMessages } from './to-cri.ts';

/** Calls that are under way when the service ends have this long. */
const endingMs = 1000;
/** Configurations of pods are far smaller. */
const maxRequestBytes = 16 * 1024 * 1024;

const asIs = (bytes: Buffer): Buffer => bytes;

/** The calls of CRI, wherever they come from. */
export interface CriServer {
  readonly grpc: Server;
  /** Ends what goes on for long: events, and pulls whose progress is told. */
  endStreams(): void;
  /** Ends the rest, with some time for calls under way. */
  shutDown(): Promise<void>;
}

/** Answers the calls of CRI by an engine; it listens nowhere yet. */
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
  const answers = [
    ...runtimeAnswers(runtime),
    ...sandboxAnswers(runtime),
    ...containerAnswers(runtime),
    ...imageAnswers(images),
    ...streamAnswers(runtime, streams),
  ];
  for (const one of answers) {
    const handle = (call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>) =>
      reply(one, call, done, logger);
    grpc.register(`/runtime.v1.${one.service}/${one.name}`, handle, asIs, asIs, 'unary');
  }
  const ending = new AbortController();
  const stream = (path: string, messages: Messages) => {
    const tell = (call: ServerWritableStream<Buffer, Buffer>) => void tellAll(call, messages, ending.signal);
    grpc.register(path, tell, asIs, asIs, 'serverStream');
  };
  stream('/runtime.v1.RuntimeService/GetContainerEvents', (_, signal) => eventMessages(runtime, signal));
  stream(pullWithProgress, (request, signal) => pullSteps(images, request, signal));
  return { grpc, endStreams: () => ending.abort(), shutDown: () => shutDown(grpc) };
}

function reply(one: Answer, call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>, logger: Logger): void {
  const gone = new AbortController();
  call.once('cancelled', () => gone.abort(new RuntimeError('Aborted', 'the caller gave up')));
  one.reply(call.request, gone.signal).then(
    (bytes) => done(null, bytes),
    (error: unknown) => {
      const refusal = refusalOf(error);
      logger.debug('call refused', { call: one.name, reason: refusal.details });
      done(refusal);
    },
  );
}

/** What is told to one caller. */
type Messages = (request: Buffer, signal: AbortSignal) => AsyncIterable<Buffer>;

/** Ends when the caller goes, the service ends, or there is no more to tell. */
async function tellAll(
  call: ServerWritableStream<Buffer, Buffer>,
  messages: Messages,
  ending: AbortSignal,
): Promise<void> {
  const gone = new AbortController();
  call.once('cancelled', () => gone.abort());
  try {
    for await (const bytes of messages(call.request, AbortSignal.any([gone.signal, ending]))) {
      if (!call.write(bytes)) await drained(call, gone.signal);
    }
    call.end();
  } catch (error) {
    call.emit('error', refusalOf(error));
  }
}

/**
 * A caller who does not read holds nothing up but its own stream: the engine replaces what it has not fetched by one
 * event.
 */
function drained(call: ServerWritableStream<Buffer, Buffer>, gone: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      call.off('drain', done);
      gone.removeEventListener('abort', done);
      resolve();
    };
    call.once('drain', done);
    gone.addEventListener('abort', done);
    if (gone.aborted) done();
  });
}

function shutDown(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const force = setTimeout(() => server.forceShutdown(), endingMs);
    server.tryShutdown(() => {
      clearTimeout(force);
      resolve();
    });
  });
}
