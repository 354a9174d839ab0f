import { Server, ServerCredentials, type ServerUnaryCall, type ServerWritableStream, type sendUnaryData } from '@grpc/grpc-js';
import { type ContainerEngine, RuntimeError } from '@keelson/container-runtime';
import { type Logger, silentLogger } from '@keelson/core';
import type { Answer } from './answer.ts';
import { containerAnswers } from './container-answers.ts';
import { eventMessages } from './event-messages.ts';
import { refusalOf } from './grpc-status.ts';
import { imageAnswers } from './image-answers.ts';
import { runtimeAnswers } from './runtime-answers.ts';
import { sandboxAnswers } from './sandbox-answers.ts';
import { takeSocketPlace } from './socket-place.ts';
import { streamAnswers } from './stream-answers.ts';
import { StreamServer } from './streams/stream-server.ts';

export interface CriServiceOptions {
  /** What the calls are about; it stays the caller's. */
  readonly engine: ContainerEngine;
  /** Absolute path of the unix socket; the folder is made if it is not there. Whoever may open the socket may do anything. */
  readonly socketPath: string;
  readonly logger?: Logger;
}

/** A service that listens. */
export interface CriServiceHandle extends AsyncDisposable {
  readonly socketPath: string;
}

/** Calls that are under way when the service ends have this long. */
const endingMs = 1000;
/** Configurations of pods are far smaller. */
const maxRequestBytes = 16 * 1024 * 1024;

const asIs = (bytes: Buffer): Buffer => bytes;

/**
 * Serves an engine as CRI v1 at a unix socket, for tools such as crictl. The socket is its owner's alone; one that a dead process left is
 * replaced. Clients must send `localhost` as authority, as those of cri-tools do from 1.31 on: HTTP/2 of Node refuses a path there.
 *
 * @throws `AlreadyExists` when somebody listens there; the system's error for a folder that cannot be made or written
 */
export async function serveCri({ engine, socketPath, logger = silentLogger }: CriServiceOptions): Promise<CriServiceHandle> {
  const place = await takeSocketPlace(socketPath);
  const server = new Server({ 'grpc.max_receive_message_length': maxRequestBytes });
  const { runtime, images } = engine;
  const streams = new StreamServer();
  const answers = [
    ...runtimeAnswers(runtime),
    ...sandboxAnswers(runtime),
    ...containerAnswers(runtime),
    ...imageAnswers(images),
    ...streamAnswers(runtime, streams),
  ];
  const ending = new AbortController();
  for (const one of answers) {
    const handle = (call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>) => reply(one, call, done, logger);
    server.register(`/runtime.v1.${one.service}/${one.name}`, handle, asIs, asIs, 'unary');
  }
  const tell = (call: ServerWritableStream<Buffer, Buffer>) => void tellEvents(engine, call, ending.signal);
  server.register('/runtime.v1.RuntimeService/GetContainerEvents', tell, asIs, asIs, 'serverStream');
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= (async () => {
      ending.abort();
      await place.release();
      await streams.close();
      await shutDown(server);
    })();
    return closing;
  };
  try {
    await bind(server, place.path);
    await place.publish();
  } catch (error) {
    await close();
    throw error;
  }
  return { socketPath, [Symbol.asyncDispose]: close };
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

/** Ends when the caller goes, the service ends, or the engine has no more to tell. */
async function tellEvents(
  { runtime }: ContainerEngine,
  call: ServerWritableStream<Buffer, Buffer>,
  ending: AbortSignal,
): Promise<void> {
  const gone = new AbortController();
  call.once('cancelled', () => gone.abort());
  try {
    for await (const bytes of eventMessages(runtime, AbortSignal.any([gone.signal, ending]))) {
      if (!call.write(bytes)) await drained(call, gone.signal);
    }
    call.end();
  } catch (error) {
    call.emit('error', refusalOf(error));
  }
}

/** A caller who does not read holds nothing up but its own stream: the engine replaces what it has not fetched by one event. */
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

function bind(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.bindAsync(`unix://${path}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
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
