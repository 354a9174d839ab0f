import type { Brand, Clock, Logger } from '@keelson/core';

/** In whose name requests are made; the server checks that the caller may do that. */
export interface Impersonation {
  readonly user: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** Where a server is and how a client presents itself. */
export interface HttpClientOptions {
  /** `http://` or `https://`, host, port; a path is put before every request's path. */
  readonly server: string;
  /** PEM certificates that the server's must come from; default: those the platform trusts. */
  readonly ca?: string | Buffer;
  /** PEM certificate of the client, with `clientKey`. */
  readonly clientCertificate?: string | Buffer;
  readonly clientKey?: string | Buffer;
  /** Name that the server's certificate must be valid for, where it is not the host of `server`. */
  readonly tlsServerName?: string;
  /** Accepts any certificate of the server. For trials only: whoever is on the way can read and change everything. */
  readonly insecureSkipTlsVerify?: boolean;
  /** Sent as `Authorization: Bearer`. */
  readonly token?: string;
  /** Asked for the token before every request, so that it may change; wins over `token`. */
  readonly tokenProvider?: () => string | Promise<string>;
  readonly impersonate?: Impersonation;
  /** Default `keelson-client`. */
  readonly userAgent?: string;
  /** Requests per second in the long run, retries and watches included. Default: no limit. */
  readonly qps?: number;
  /** Requests that may be made at once after a pause. Default: 10, at least 1; means nothing without `qps`. */
  readonly burst?: number;
  /**
   * How the objects of declared kinds travel. `protobuf` saves bytes and time where the kind's fields have numbers;
   * other kinds, patches and resources known by name alone stay JSON. Default `json`.
   */
  readonly encoding?: 'json' | 'protobuf';
  /** The words of media types, where the server has its own. */
  readonly brand?: Brand;
  /** Asks for compressed answers; watches never are. Default true. */
  readonly compression?: boolean;
  /**
   * How long one request may take from its start to the last byte of its answer; for watches, to the answer's head.
   * Default 60 s.
   */
  readonly timeoutMs?: number;
  /** Simultaneous connections for requests that are not watches. Default 64. */
  readonly maxConnections?: number;
  /** Times limits, pauses and time-outs; default the machine's. */
  readonly clock?: Clock;
  readonly logger?: Logger;
  /** Hears the remarks of `Warning` headers; default: nobody does. */
  readonly onWarning?: (text: string) => void;
}
