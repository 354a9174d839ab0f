import { Client, type ClientReadableStream, status } from '@grpc/grpc-js';
import { RuntimeError } from '@keelson/container-runtime';
import { addAbortListener, type Logger, removeAbortListener } from '@keelson/core';
import { Calls, type CriCall, type CriService } from '../api/calls.ts';
import { isGrpcError, translateCriError } from './cri-errors.ts';
import { type Endpoint, parseEndpoint } from './endpoint.ts';
import { channelCredentials, type PinnedTls } from './pinned-tls.ts';

/** Versions of the protocol, the preferred one first. Their messages are the same as far as they are used here. */
const versions = ['v1', 'v1alpha2'] as const;
type ApiVersion = (typeof versions)[number];

const channelOptions = {
  // Output of commands comes in one message; daemons cut it at 16 MiB for each stream.
  'grpc.max_receive_message_length': 64 * 1024 * 1024,
  'grpc.max_send_message_length': 64 * 1024 * 1024,
  // A daemon that comes back is found within a second.
  'grpc.initial_reconnect_backoff_ms': 50,
  'grpc.min_reconnect_backoff_ms': 50,
  'grpc.max_reconnect_backoff_ms': 1000,
  // Two connections to one daemon have nothing to do with each other.
  'grpc.use_local_subchannel_pool': 1,
  'grpc.enable_retries': 0,
};

/** Names are not compared, and an address is none that TLS may send. */
const tlsOptions = { 'grpc.ssl_target_name_override': 'localhost' };

const asIs = (bytes: Buffer): Buffer => bytes;

/**
 * Calls to one daemon. The connection is made by the first call and made again whenever it was lost; until then calls
 * fail with `Unavailable`. Which version of the protocol the daemon speaks is found out by the first call and again
 * when it stops speaking it.
 */
export class CriConnection {
  readonly endpoint: Endpoint;
  /** Absent: the connection is plain. */
  readonly tls: PinnedTls | undefined;
  readonly #client: Client;
  readonly #logger: Logger;
  #version: Promise<ApiVersion> | undefined;
  #closed = false;

  constructor(endpoint: string, logger: Logger, tls?: PinnedTls) {
    this.endpoint = parseEndpoint(endpoint);
    this.tls = tls;
    this.#logger = logger.child({ endpoint });
    this.#client = new Client(this.endpoint.target, channelCredentials(tls), {
      ...channelOptions,
      ...(tls && tlsOptions),
    });
  }

  /** One call with its messages decoded. @throws a `RuntimeError` */
  async call<Q, R>(call: CriCall<Q, R>, request: Q, signal?: AbortSignal): Promise<R> {
    return call.response.decode(await this.raw(call.service, call.name, call.request.encode(request), signal));
  }

  /** One call whose reply comes as it is on the wire. @throws a `RuntimeError` */
  async raw(service: CriService, name: string, request: Buffer, signal?: AbortSignal): Promise<Buffer> {
    if (this.#closed) throw new RuntimeError('Unavailable', 'the runtime was closed');
    try {
      return await this.#negotiated(service, name, request, signal);
    } catch (error) {
      if (signal?.aborted) throw new RuntimeError('Aborted', `${name}: the caller gave up`, { cause: signal.reason });
      throw translateCriError(error);
    }
  }

  /** A stream of messages from the daemon; the caller listens to its events. */
  async stream(service: CriService, name: string, request: Buffer): Promise<ClientReadableStream<Buffer>> {
    return this.streamAt(`/runtime.${await this.#apiVersion()}.${service}/${name}`, request);
  }

  /** The same for a call that is none of CRI's. */
  streamAt(path: string, request: Buffer): ClientReadableStream<Buffer> {
    return this.#client.makeServerStreamRequest(path, asIs, asIs, request);
  }

  close(): void {
    this.#closed = true;
    this.#client.close();
  }

  async #negotiated(
    service: CriService,
    name: string,
    request: Buffer,
    signal: AbortSignal | undefined,
  ): Promise<Buffer> {
    const version = await this.#apiVersion();
    try {
      return await this.#unary(version, service, name, request, signal);
    } catch (error) {
      if (!isUnknownService(error)) throw error;
      // Another daemon has taken the place of the one that was asked.
      this.#version = undefined;
      return await this.#unary(await this.#apiVersion(), service, name, request, signal);
    }
  }

  /** Callers that come while the version is asked for share the question. */
  #apiVersion(): Promise<ApiVersion> {
    if (this.#version === undefined) {
      const asking = this.#askVersion();
      this.#version = asking;
      asking.catch(() => {
        if (this.#version === asking) this.#version = undefined;
      });
    }
    return this.#version;
  }

  async #askVersion(): Promise<ApiVersion> {
    const question = Calls.version.request.encode({ version: '0.1.0' });
    let refusal: unknown;
    for (const version of versions) {
      try {
        await this.#unary(version, 'RuntimeService', 'Version', question, undefined);
        this.#logger.debug('runtime speaks CRI', { version });
        return version;
      } catch (error) {
        // Every service has this method: one that lacks it is another service.
        if (!isGrpcError(error) || error.code !== status.UNIMPLEMENTED) throw error;
        refusal = error;
      }
    }
    throw new RuntimeError('Unsupported', 'the daemon speaks no known version of CRI', { cause: refusal });
  }

  #unary(
    version: ApiVersion,
    service: CriService,
    name: string,
    request: Buffer,
    signal: AbortSignal | undefined,
  ): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const path = `/runtime.${version}.${service}/${name}`;
      const call = this.#client.makeUnaryRequest(path, asIs, asIs, request, (error, reply) => {
        removeAbortListener(signal, cancel);
        if (error !== null) reject(error);
        else resolve(reply ?? Buffer.alloc(0));
      });
      const cancel = () => call.cancel();
      if (signal?.aborted) cancel();
      else addAbortListener(signal, cancel);
    });
  }
}

/** The daemon does not know the service; a method that it lacks in a service it has reads "unknown method". */
function isUnknownService(error: unknown): boolean {
  return isGrpcError(error) && error.code === status.UNIMPLEMENTED && /unknown service/.test(error.details);
}
