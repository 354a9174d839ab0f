import { X509Certificate } from 'node:crypto';
import type { ServerOptions as HttpOptions, RequestListener, Server } from 'node:http';
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2';
import { createSecureContext, type SecureContext, type SecureContextOptions, type Server as TlsServer } from 'node:tls';
import { http2ServerOptions } from '@keelson/http-koa';
import type { ConnectionLimits } from '../config/connection-limits.ts';

/** The serving certificate, its key, and the authorities of clients; all PEM. */
export interface ServerTls {
  readonly certificate: string;
  readonly key: string;
  readonly authorities: readonly string[];
  /** The certificate for clients that name the server otherwise than the serving certificate does. */
  readonly named?: { readonly certificate: string; readonly key: string } | undefined;
}

/** A server with TLS. */
export interface SecureServer {
  readonly server: Server;
  /** Replaces certificates, keys and authorities for new connections. */
  setTls(tls: ServerTls): void;
}

/**
 * TLS 1.2 is limited to suites with forward secrecy and authenticated encryption, without CBC. All suites of TLS 1.3
 * are such.
 */
const ciphers = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

/** The part of the TLS options that can be replaced while the server runs. */
function secureContext({ certificate, key, authorities }: ServerTls): SecureContextOptions {
  return { cert: certificate, key, ca: [...authorities], minVersion: 'TLSv1.2', ciphers };
}

/**
 * Selects the context for the name that a client sent. Clients that connect to an IP address send none, so that
 * programs in pods always get the serving certificate.
 */
function selection(tls: ServerTls): (name: string) => SecureContext | undefined {
  const { certificate, named } = tls;
  if (named === undefined) return () => undefined;
  const internal = new X509Certificate(certificate);
  const context = createSecureContext(secureContext({ ...tls, ...named }));
  return (name) => (internal.checkHost(name) === undefined ? context : undefined);
}

/**
 * An HTTPS server with HTTP/2 and HTTP/1.1. Closing it sends GOAWAY to HTTP/2 clients while their running requests
 * finish.
 */
export function createTlsServer(
  listener: RequestListener,
  tls: ServerTls,
  options: HttpOptions,
  limits: ConnectionLimits,
): SecureServer {
  let select = selection(tls);
  const server: Http2SecureServer = createSecureServer(
    {
      ...secureContext(tls),
      // The default context is that of the serving certificate.
      SNICallback: (name, done) => done(null, select(name)),
      // The authenticator decides about clients without a certificate.
      requestCert: true,
      rejectUnauthorized: false,
      allowHTTP1: true,
      handshakeTimeout: limits.handshakeMs,
      peerMaxConcurrentStreams: limits.streams,
      settings: { maxConcurrentStreams: limits.streams, maxHeaderListSize: options.maxHeaderSize ?? 16_384 },
      maxSessionMemory: 64,
      ...http2ServerOptions,
      ...socketOptions(options),
      ...http1Options(options),
    },
    // Requests and responses of HTTP/2 are those of `http2ServerOptions`, with the members that the listener uses.
    listener as unknown as Parameters<typeof createSecureServer>[1] & object,
  );
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
    session.on('error', () => session.destroy());
  });
  const close = server.close.bind(server);
  server.close = (callback) => {
    for (const session of sessions) session.close();
    return close(callback);
  };
  return {
    server: Object.assign(server as unknown as Server, timeouts(options)),
    setTls: (next) => {
      (server as unknown as TlsServer).setSecureContext(secureContext(next));
      select = selection(next);
    },
  };
}

/** Options of `net.Server`, which only plain HTTP/1.1 servers accept directly. */
function socketOptions({ noDelay = true, keepAlive = false, keepAliveInitialDelay = 0 }: HttpOptions): object {
  return { noDelay, keepAlive, keepAliveInitialDelay };
}

function http1Options(options: HttpOptions): object {
  return {
    http1Options: options,
    ...(options.maxHeaderSize === undefined ? {} : { maxHeaderSize: options.maxHeaderSize }),
  };
}

/** Timeouts that the HTTP/1.1 part of the server reads from its properties. */
function timeouts(options: HttpOptions): Partial<Server> {
  const { headersTimeout, requestTimeout, keepAliveTimeout, connectionsCheckingInterval } = options;
  return {
    ...(connectionsCheckingInterval === undefined ? {} : { connectionsCheckingInterval }),
    ...(headersTimeout === undefined ? {} : { headersTimeout }),
    ...(requestTimeout === undefined ? {} : { requestTimeout }),
    ...(keepAliveTimeout === undefined ? {} : { keepAliveTimeout }),
  };
}
