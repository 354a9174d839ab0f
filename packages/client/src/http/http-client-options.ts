import type { Brand } from '@keelson/core/internal';
import type { Clock, Logger, Tracing } from '@keelson/core/runtime';

/** A user to impersonate; the server authorizes the impersonation. */
export interface Impersonation {
  readonly user: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** Address of a server and credentials of a client. */
export interface HttpClientOptions {
  /** `http://` or `https://`, host, port, and an optional path prefix for all requests. */
  readonly server: string;
  /** PEM certificates of the authorities of the server's certificate; default: those of the platform. */
  readonly ca?: string | Buffer;
  /** PEM certificate of the client, with `clientKey`. */
  readonly clientCertificate?: string | Buffer;
  readonly clientKey?: string | Buffer;
  /** Name that the server's certificate must contain, if it is not the host of `server`. */
  readonly tlsServerName?: string;
  /** Do not verify the server's certificate. For tests only: the connection can be intercepted. */
  readonly insecureSkipTlsVerify?: boolean;
  /** Sent as `Authorization: Bearer`. */
  readonly token?: string;
  /** Called for the token before every request; takes precedence over `token`. */
  readonly tokenProvider?: () => string | Promise<string>;
  readonly impersonate?: Impersonation;
  /** Further headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** User agent of the requests. Default `keelson-client`. */
  readonly userAgent?: string;
  /** Average number of requests per second, including retries and watches. Default: no limit. */
  readonly qps?: number;
  /** Number of requests that may be sent in a burst. Default: 10, at least 1; requires `qps`. */
  readonly burst?: number;
  /**
   * Encoding of objects of declared kinds. `protobuf` saves bytes and time for kinds with field numbers; other kinds,
   * patches and resources without a declaration use JSON. Default `json`.
   */
  readonly encoding?: 'json' | 'protobuf';
  /** Names used in media types. Default: those of Kubernetes, which most servers use. */
  readonly brand?: Brand;
  /** Request compressed responses, except for watches. Default true. */
  readonly compression?: boolean;
  /**
   * Timeout of a request from its start to the last byte of its response; for watches, to the head of the response.
   * Default 60 s.
   */
  readonly timeoutMs?: number;
  /** Concurrent connections for requests other than watches. Default 64. */
  readonly maxConnections?: number;
  /** Clock for limits, pauses and timeouts; default: the system clock. */
  readonly clock?: Clock;
  readonly logger?: Logger;
  /** Sends the trace context of the active span with each request. Default: none is sent. */
  readonly tracing?: Pick<Tracing, 'headers'>;
  /** Receives the texts of `Warning` headers; default: they are dropped. */
  readonly onWarning?: (text: string) => void;
}
