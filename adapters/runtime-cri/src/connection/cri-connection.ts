import { X509Certificate } from 'node:crypto';
import { isAbsolute } from 'node:path';
import { createSecureContext, type PeerCertificate } from 'node:tls';
import { ChannelCredentials, Client, type ClientReadableStream, Metadata, status } from '@grpc/grpc-js';
import { isRuntimeError, RuntimeError, RuntimeErrorCode } from '@keelson/container-runtime';
import { addAbortListener, type Logger, removeAbortListener } from '@keelson/core';
import { Calls, type CriCall, type CriService } from '../api/calls.ts';

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

interface GrpcError {
  readonly code: number;
  readonly details: string;
  readonly metadata?: unknown;
}

/** Under this name the service of this package tells the code of the contract, of which gRPC has no equal. */
export const codeKey = 'keelson-error-code';

export function isGrpcError(error: unknown): error is GrpcError {
  return typeof (error as GrpcError | undefined)?.code === 'number' && typeof (error as GrpcError).details === 'string';
}

/**
 * Daemons answer with UNKNOWN what they have a code for; these are texts by which it is told apart, those of containerd
 * above all.
 */
const texts: readonly (readonly [RegExp, RuntimeErrorCode])[] = [
  [/server is not initialized yet|transport is closing|connection error/, 'Unavailable'],
  [/is reserved for|is already reserved|name .* is in use/, 'AlreadyExists'],
  [/is not a shared( or slave)? mount|seccomp is not (supported|enabled)|apparmor is not supported/i, 'Unsupported'],
  [/unable to find user|no users found|unable to find group|no groups found/, 'StartFailed'],
  [/image .*: not found|failed to resolve image|image not known|no such image/, 'ImageNotFound'],
  [/is in CONTAINER_\w+ state|is not running|not in created state|is already in \w+ state/, 'InvalidState'],
  [/sandbox .*(not ready|not running)|get sandbox container task/, 'InvalidState'],
  [/timeout .* exceeded|context deadline exceeded/, 'DeadlineExceeded'],
  [/failed to exec in container.*(not found|no such file|permission denied)/s, 'StartFailed'],
];

/** What the code alone says; undefined where it says nothing. */
const codes: ReadonlyMap<number, RuntimeErrorCode> = new Map([
  // A caller who gave up is told before the daemon is: what comes here was cancelled by the daemon itself, on its way
  // out.
  [status.CANCELLED, 'Unavailable'],
  [status.INVALID_ARGUMENT, 'InvalidArgument'],
  [status.DEADLINE_EXCEEDED, 'DeadlineExceeded'],
  [status.NOT_FOUND, 'NotFound'],
  [status.ALREADY_EXISTS, 'AlreadyExists'],
  [status.FAILED_PRECONDITION, 'InvalidState'],
  [status.UNIMPLEMENTED, 'Unsupported'],
  [status.UNAVAILABLE, 'Unavailable'],
]);

/** The one place where a failure of the daemon or of the connection to it becomes a {@link RuntimeError}. */
export function translateCriError(error: unknown): RuntimeError {
  if (isRuntimeError(error)) return error;
  if (!isGrpcError(error))
    return new RuntimeError('Internal', error instanceof Error ? error.message : String(error), { cause: error });
  return new RuntimeError(codeOf(error), error.details, { cause: error });
}

function codeOf({ code, details, metadata }: GrpcError): RuntimeErrorCode {
  const [exact] = metadata instanceof Metadata ? metadata.get(codeKey) : [];
  const known = Object.values(RuntimeErrorCode).find((name) => name === exact);
  if (known !== undefined) return known;
  const plain = codes.get(code);
  if (plain !== undefined) return plain;
  return texts.find(([pattern]) => pattern.test(details))?.[1] ?? 'Internal';
}

/** The same failure under another code. */
export function withCode(error: RuntimeError, code: RuntimeErrorCode): RuntimeError {
  return new RuntimeError(code, error.message, { cause: error.cause ?? error });
}

export interface Endpoint {
  /** What the gRPC library dials. */
  readonly target: string;
  /** The daemon is on this machine: paths it tells or is told are those that this process sees. */
  readonly local: boolean;
}

/** @throws `InvalidArgument` */
export function parseEndpoint(text: string): Endpoint {
  const path = isAbsolute(text) ? text : /^unix:(?:\/\/)?(\/.+)$/.exec(text)?.[1];
  if (path !== undefined) return { target: `unix://${path}`, local: true };
  const address = /^tcp:\/\/([^/]+:\d+)\/?$/.exec(text)?.[1];
  if (address === undefined) {
    const forms = 'unix:///path, /path or tcp://host:port';
    throw new RuntimeError('InvalidArgument', `not an endpoint of a container runtime (${forms}): "${text}"`);
  }
  return { target: `dns:${address}`, local: /^(127\.\d+\.\d+\.\d+|localhost|\[::1\]):/.test(address) };
}

/** Each end of a connection knows the one certificate that the other end must show; all of it PEM. */
export interface PinnedTls {
  readonly key: string;
  readonly certificate: string;
  /** The certificate of the other end. It vouches for itself, and its names and purposes mean nothing here. */
  readonly peer: string;
}

/** Both ends are of the same making. */
const oldestVersion = 'TLSv1.3';

/** What a server of TLS is given. */
export function serverTls({ key, certificate, peer }: PinnedTls) {
  return { key, cert: certificate, ca: peer, minVersion: oldestVersion } as const;
}

/**
 * Whether a certificate that was shown is the one that was agreed on. That the other end has its key is proved by the
 * handshake.
 */
export function isPinned(shown: PeerCertificate, peer: string): boolean {
  // Nothing shown is an object without anything.
  const raw = shown.raw as Buffer | undefined;
  return raw?.equals(new X509Certificate(peer).raw) === true;
}

/** In place of the comparison of names. */
function serverCheck({ peer }: PinnedTls): (host: string, shown: PeerCertificate) => Error | undefined {
  return (_, shown) =>
    isPinned(shown, peer) ? undefined : new Error('it shows another certificate than was agreed on');
}

/** What a client of TLS is given. */
export function clientTls(tls: PinnedTls) {
  return { ...serverTls(tls), checkServerIdentity: serverCheck(tls) } as const;
}

/** The same for gRPC. */
export function channelCredentials(tls: PinnedTls | undefined): ChannelCredentials {
  if (tls === undefined) return ChannelCredentials.createInsecure();
  return ChannelCredentials.createFromSecureContext(createSecureContext(serverTls(tls)), {
    checkServerIdentity: serverCheck(tls),
  });
}
