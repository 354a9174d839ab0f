import { X509Certificate } from 'node:crypto';
import { isAbsolute } from 'node:path';
import { createSecureContext, type PeerCertificate } from 'node:tls';
import { ChannelCredentials, Client, type ClientReadableStream, Metadata, status } from '@grpc/grpc-js';
import { isRuntimeError, RuntimeError, RuntimeErrorCode } from '@keelson/container-runtime';
import { addAbortListener, type Logger, removeAbortListener } from '@keelson/core/runtime';
import { Calls, type CriCall, type CriService } from '../api/calls.ts';

/** Versions of the protocol, the preferred one first. The fields that this adapter uses are the same in both. */
const versions = ['v1', 'v1alpha2'] as const;
type ApiVersion = (typeof versions)[number];

const channelOptions = {
  // The output of ExecSync is one message; daemons limit it to 16 MiB for each stream.
  'grpc.max_receive_message_length': 64 * 1024 * 1024,
  'grpc.max_send_message_length': 64 * 1024 * 1024,
  // With at most one second between attempts, the client reconnects soon after a restart of the daemon.
  'grpc.initial_reconnect_backoff_ms': 50,
  'grpc.min_reconnect_backoff_ms': 50,
  'grpc.max_reconnect_backoff_ms': 1000,
  // Each CriConnection has its own connection to the daemon.
  'grpc.use_local_subchannel_pool': 1,
  'grpc.enable_retries': 0,
};

/** TLS does not permit an address as the server name; the pinned certificate is checked instead of the name. */
const tlsOptions = { 'grpc.ssl_target_name_override': 'localhost' };

const asIs = (bytes: Buffer): Buffer => bytes;

/**
 * Calls one daemon. The first call connects, and later calls reconnect after an interruption; without a connection
 * calls fail with `Unavailable`. The first call determines the version of the protocol, and a later call does so again
 * when the daemon no longer supports that version.
 */
export class CriConnection {
  readonly endpoint: Endpoint;
  /** TLS key and certificates of the connection; undefined for an unencrypted connection. */
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

  /** Calls the daemon with decoded messages. @throws a `RuntimeError` */
  async call<Q, R>(call: CriCall<Q, R>, request: Q, signal?: AbortSignal): Promise<R> {
    return call.response.decode(await this.raw(call.service, call.name, call.request.encode(request), signal));
  }

  /** Calls the daemon and returns the encoded response. @throws a `RuntimeError` */
  async raw(service: CriService, name: string, request: Buffer, signal?: AbortSignal): Promise<Buffer> {
    if (this.#closed) throw new RuntimeError('Unavailable', 'the runtime was closed');
    try {
      return await this.#negotiated(service, name, request, signal);
    } catch (error) {
      if (signal?.aborted) throw new RuntimeError('Aborted', `${name}: the caller gave up`, { cause: signal.reason });
      throw translateCriError(error);
    }
  }

  /** Opens a stream of messages from the daemon; the caller handles its events. */
  async stream(service: CriService, name: string, request: Buffer): Promise<ClientReadableStream<Buffer>> {
    return this.streamAt(`/runtime.${await this.#apiVersion()}.${service}/${name}`, request);
  }

  /** Opens a stream for a call outside of CRI. */
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
      // Another version of the daemon now serves the endpoint, for example after an upgrade.
      this.#version = undefined;
      return await this.#unary(await this.#apiVersion(), service, name, request, signal);
    }
  }

  /** The version of the protocol; concurrent callers share one query. */
  #apiVersion(): Promise<ApiVersion> {
    if (this.#version === undefined) {
      const query = this.#queryVersion();
      this.#version = query;
      query.catch(() => {
        if (this.#version === query) this.#version = undefined;
      });
    }
    return this.#version;
  }

  async #queryVersion(): Promise<ApiVersion> {
    const request = Calls.version.request.encode({ version: '0.1.0' });
    let lastError: unknown;
    for (const version of versions) {
      try {
        await this.#unary(version, 'RuntimeService', 'Version', request, undefined);
        this.#logger.debug('the container runtime supports CRI', { version });
        return version;
      } catch (error) {
        // Every version of the service has this method, so UNIMPLEMENTED means an unsupported version.
        if (!isGrpcError(error) || error.code !== status.UNIMPLEMENTED) throw error;
        lastError = error;
      }
    }
    throw new RuntimeError('Unsupported', 'the daemon does not support CRI v1 or v1alpha2', { cause: lastError });
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

/** Whether a call failed because the daemon lacks the service. A missing method causes another error text. */
function isUnknownService(error: unknown): boolean {
  return isGrpcError(error) && error.code === status.UNIMPLEMENTED && /unknown service/.test(error.details);
}

interface GrpcError {
  readonly code: number;
  readonly details: string;
  readonly metadata?: unknown;
}

/** Trailer in which the service of this package sends the exact `RuntimeErrorCode`; gRPC has fewer codes. */
export const codeKey = 'keelson-error-code';

export function isGrpcError(error: unknown): error is GrpcError {
  return typeof (error as GrpcError | undefined)?.code === 'number' && typeof (error as GrpcError).details === 'string';
}

/** Error texts, mainly of containerd, that determine the code of errors for which daemons send UNKNOWN. */
const codesByText: readonly (readonly [RegExp, RuntimeErrorCode])[] = [
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

/** Error codes for the gRPC codes that determine them without the text. */
const codesByStatus: ReadonlyMap<number, RuntimeErrorCode> = new Map([
  // `raw` already handles a call that the caller has aborted, so here the daemon itself cancelled the call because it
  // is shutting down.
  [status.CANCELLED, 'Unavailable'],
  [status.INVALID_ARGUMENT, 'InvalidArgument'],
  [status.DEADLINE_EXCEEDED, 'DeadlineExceeded'],
  [status.NOT_FOUND, 'NotFound'],
  [status.ALREADY_EXISTS, 'AlreadyExists'],
  [status.FAILED_PRECONDITION, 'InvalidState'],
  [status.UNIMPLEMENTED, 'Unsupported'],
  [status.UNAVAILABLE, 'Unavailable'],
]);

/** Converts an error of the daemon or of the connection to a {@link RuntimeError}. */
export function translateCriError(error: unknown): RuntimeError {
  if (isRuntimeError(error)) return error;
  if (!isGrpcError(error))
    return new RuntimeError('Internal', error instanceof Error ? error.message : String(error), { cause: error });
  return new RuntimeError(codeOf(error), error.details, { cause: error });
}

function codeOf({ code, details, metadata }: GrpcError): RuntimeErrorCode {
  const [exact] = metadata instanceof Metadata ? metadata.get(codeKey) : [];
  const reported = Object.values(RuntimeErrorCode).find((name) => name === exact);
  if (reported !== undefined) return reported;
  const byStatus = codesByStatus.get(code);
  if (byStatus !== undefined) return byStatus;
  return codesByText.find(([pattern]) => pattern.test(details))?.[1] ?? 'Internal';
}

/** Returns the error with another code. */
export function withCode(error: RuntimeError, code: RuntimeErrorCode): RuntimeError {
  return new RuntimeError(code, error.message, { cause: error.cause ?? error });
}

export interface Endpoint {
  /** Target address for the gRPC library. */
  readonly target: string;
  /** The daemon runs on this machine, so its paths are valid in this process. */
  readonly local: boolean;
}

/** @throws `InvalidArgument` */
export function parseEndpoint(text: string): Endpoint {
  const path = isAbsolute(text) ? text : /^unix:(?:\/\/)?(\/.+)$/.exec(text)?.[1];
  if (path !== undefined) return { target: `unix://${path}`, local: true };
  const address = /^tcp:\/\/([^/]+:\d+)\/?$/.exec(text)?.[1];
  if (address === undefined) {
    const forms = 'unix:///path, /path or tcp://host:port';
    throw new RuntimeError('InvalidArgument', `invalid endpoint of a container runtime "${text}": must be ${forms}`);
  }
  return { target: `dns:${address}`, local: /^(127\.\d+\.\d+\.\d+|localhost|\[::1\]):/.test(address) };
}

/** Key and certificate of one end, and the pinned certificate of the other end, all in PEM. */
export interface PinnedTls {
  readonly key: string;
  readonly certificate: string;
  /** The only accepted certificate of the other end. Its issuer, names and purposes are not checked. */
  readonly peer: string;
}

/** Both ends are implemented by this package, so older versions are not needed. */
const minTlsVersion = 'TLSv1.3';

/** TLS options of a server. */
export function serverTls({ key, certificate, peer }: PinnedTls) {
  return { key, cert: certificate, ca: peer, minVersion: minTlsVersion } as const;
}

/**
 * Whether the presented certificate equals the pinned one. The handshake proves that the other end has the private key.
 */
export function isPinned(presented: PeerCertificate, peer: string): boolean {
  // Node returns an empty object when the other end presented no certificate.
  const raw = presented.raw as Buffer | undefined;
  return raw?.equals(new X509Certificate(peer).raw) === true;
}

/** Compares the pinned certificate instead of the server name. */
function serverCheck({ peer }: PinnedTls): (host: string, presented: PeerCertificate) => Error | undefined {
  return (_, presented) =>
    isPinned(presented, peer) ? undefined : new Error('the certificate of the server is not the pinned certificate');
}

/** TLS options of a client. */
export function clientTls(tls: PinnedTls) {
  return { ...serverTls(tls), checkServerIdentity: serverCheck(tls) } as const;
}

/** Channel credentials of a gRPC client. */
export function channelCredentials(tls: PinnedTls | undefined): ChannelCredentials {
  if (tls === undefined) return ChannelCredentials.createInsecure();
  return ChannelCredentials.createFromSecureContext(createSecureContext(serverTls(tls)), {
    checkServerIdentity: serverCheck(tls),
  });
}
