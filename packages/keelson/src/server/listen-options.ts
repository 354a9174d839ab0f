import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { KeyPair } from '@keelson/certificates';
import type { UserInfo } from '@keelson/core';
import type { Brand } from '@keelson/core/internal';
import type { ConnectionLimits } from '../config/connection-limits.ts';
import type { FlowControlChoice } from '../config/flow-control.ts';
import type { ListenAddress } from '../config/options.ts';
import type { Credentials } from '../tls/credentials.ts';
import type { RouteOptions } from './request-state.ts';

/** Options of `listen`. */
export interface ListenOptions extends RouteOptions {
  /** Default: `127.0.0.1` and a port chosen by the system. */
  readonly address?: ListenAddress;
  /**
   * Serves TLS and authenticates users by client certificates or tokens. Absent: plain HTTP on loopback addresses,
   * where every user is the administrator.
   */
  readonly credentials?: Credentials;
  /** Names used in media types and in the metadata API. Default: those of Kubernetes. */
  readonly brand?: Brand;
  /**
   * IP address at which pods reach this server, for the service `kubernetes`; used with service accounts and TLS. The
   * server's certificate must contain it. Default: the address that the server listens on.
   */
  readonly advertiseAddress?: string;
  /** Host names without ports that plain HTTP accepts in addition to those of the loopback interface. */
  readonly allowedHosts?: readonly string[];
  /** Timeout in milliseconds for running requests and connections when the server closes. Default 5,000. */
  readonly drainMs?: number;
  /** Limits of connections. Default: those of {@link ConnectionLimits}. */
  readonly limits?: Partial<ConnectionLimits>;
  /** Limits on concurrent requests and their division among users. Default: those of {@link FlowControlChoice}. */
  readonly flowControl?: FlowControlChoice;
  /** How the server reaches node agents for logs, commands and proxies. */
  readonly agents?: AgentAccess;
}

/** Options of `handler`. */
export interface HandlerOptions
  extends RouteOptions,
    Pick<ListenOptions, 'brand' | 'allowedHosts' | 'drainMs' | 'flowControl' | 'agents' | 'credentials'> {
  /** Path below which the API is mounted, such as `/cluster`. Default: the root. */
  readonly prefix?: string;
  /**
   * The user whom the program has authenticated already; undefined: the user of the bearer token or client certificate
   * of the request. Throw `statusErrors.unauthorized()` for invalid credentials.
   */
  readonly authenticate?: (request: IncomingMessage) => UserInfo | undefined | Promise<UserInfo | undefined>;
  /**
   * True: every user is the administrator. Only for servers on loopback addresses: requests under other host names than
   * those of `allowedHosts`, and those of web pages, are refused. Default false.
   */
  readonly insecure?: boolean;
}

/** The API of a plane for a server of the program. */
export interface PlaneHandler {
  /**
   * Listener for `node:http`, Express (`app.use(listener)`), connect, and the raw requests of Koa and Fastify. Requests
   * outside of the prefix are passed to `next`, and are answered 404 without one.
   */
  readonly listener: (request: IncomingMessage, response: ServerResponse, next?: () => void) => void;
  /**
   * Listener for the event `upgrade` of the server: commands in pods, port forwarding. Returns false for requests
   * outside of the prefix, which other listeners may handle.
   */
  readonly upgrade: (request: IncomingMessage, socket: Socket, head: Buffer) => boolean;
  /** Ends watches cleanly, aborts connect requests and waits for running requests; within `drainMs`. */
  close(): Promise<void>;
}

/** Credentials between the server and the node agents. */
export interface AgentAccess {
  /** Client certificate of the server. Default: that of the credentials; a plain HTTP server has none. */
  readonly identity?: KeyPair;
  /** Authorities of the agents' certificates, PEM. Default: the certificates are not verified. */
  readonly authority?: string | (() => string | undefined);
  /** Ports at 127.0.0.1 of the agents in this process, by node name. The map may change. */
  readonly local?: ReadonlyMap<string, number>;
}

/** A server of a plane. */
export interface Listening {
  readonly url: string;
  readonly port: number;
  /**
   * Replaces certificate, key and authorities. New connections use them; existing ones continue, and their client
   * certificates are checked again.
   */
  setCredentials(credentials: Credentials): void;
  /** Ends watches cleanly, aborts connect requests, waits for running requests, then closes; within `drainMs`. */
  close(): Promise<void>;
}
