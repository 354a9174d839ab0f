import type { IncomingMessage, ServerOptions } from 'node:http';
import type {
  Brand,
  Clock,
  FormBuilder,
  Logger,
  Metrics,
  RequestAttributes,
  ResourceRegistry,
  UserInfo,
} from '@keelson/core';

/** What an authorizer says; a bare boolean is the same without a reason. */
export type Authorization = boolean | { readonly allowed: boolean; readonly reason?: string };

/**
 * Finds out who sent a request. Undefined = no credentials were sent (the anonymous user, or the `insecureUser`); bad
 * credentials are a thrown `statusErrors.unauthorized()`.
 */
export type Authenticate = (request: IncomingMessage) => UserInfo | undefined | Promise<UserInfo | undefined>;

/**
 * Decides whether a user may do what a request wants. A PUT that is about to create an object is decided a second time,
 * as `create`.
 */
export type Authorize = (attributes: RequestAttributes, user: UserInfo) => Authorization | Promise<Authorization>;

/** One check behind `/healthz`, `/livez` and `/readyz`. */
export interface HealthCheck {
  /** Path segment under which the check can be asked alone. */
  readonly name: string;
  /** Throws, rejects or gives false when not healthy. */
  check(): boolean | undefined | void | Promise<boolean | undefined | void>;
  /** Endpoints that include the check; default: `readyz` alone. */
  readonly on?: readonly ('healthz' | 'livez' | 'readyz')[];
}

/** What `/version` tells; missing words get neutral values. */
export interface VersionInfo {
  readonly major: string;
  readonly minor: string;
  /** Semantic version with a leading `v`; clients parse it. */
  readonly gitVersion: string;
  readonly gitCommit?: string;
  readonly gitTreeState?: string;
  readonly buildDate?: string;
}

/**
 * Limits on what one client, or all clients together, can request of the server: see
 * docs/reference/api-rules.md#limits-of-a-request.
 */
export interface HttpLimits {
  /** Greatest request body. */
  readonly bodyBytes: number;
  /** Reading requests at the same time; watches do not count. */
  readonly readsInFlight: number;
  /** Writing requests at the same time. */
  readonly mutationsInFlight: number;
  /**
   * How far the process may be behind its work, in milliseconds, before further requests are answered with 429; health
   * checks and leases are excepted.
   */
  readonly overloadDelayMs: number;
  /** The same for members of `system:masters`. */
  readonly overloadDelayMastersMs: number;
  /** Whole life of a request that is neither a watch nor passed on. */
  readonly requestTimeoutMs: number;
  /** Time for the operation itself, within the life of the request. */
  readonly handlerTimeoutMs: number;
  /** Least life of a watch whose client names none; the actual one is random up to twice as long. */
  readonly watchTimeoutMs: number;
  /** Distance of bookmarks on a watch that allows them. */
  readonly bookmarkIntervalMs: number;
  /** All open watches together. */
  readonly watches: number;
  /** Open watches of one user; `system:masters` excepted. */
  readonly watchesPerUser: number;
  /** Calls that are passed on to nodes and pods at the same time, tunnels among them. */
  readonly connects: number;
  /** Time for a connection to a node or pod, TLS included. */
  readonly dialTimeoutMs: number;
  /** Time that a node agent has for the head of its answer. */
  readonly agentAnswerMs: number;
  /** Smallest answer that is compressed when the client accepts gzip. */
  readonly gzipBytes: number;
}

export const defaultLimits: HttpLimits = {
  bodyBytes: 3 * 1024 * 1024,
  readsInFlight: 400,
  mutationsInFlight: 200,
  overloadDelayMs: 250,
  overloadDelayMastersMs: 1000,
  requestTimeoutMs: 60_000,
  handlerTimeoutMs: 34_000,
  watchTimeoutMs: 1_800_000,
  bookmarkIntervalMs: 60_000,
  watches: 20_000,
  watchesPerUser: 1000,
  connects: 5_000,
  dialTimeoutMs: 10_000,
  agentAnswerMs: 30_000,
  gzipBytes: 128 * 1024,
};

/**
 * Options for the `http.Server` (or `https.Server`) that carries the listener: 10 s for the headers, 32 KiB of them,
 * and a bound on the time a body may take. With these alone Node applies the time for headers to connections that have
 * not been used yet as well, and answers 408 on them; `listen` of a control plane keeps those open like any idle
 * connection.
 */
export const serverOptions: ServerOptions = {
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  maxHeaderSize: 32 * 1024,
  keepAliveTimeout: 90_000,
  connectionsCheckingInterval: 2_000,
  // A client that vanished without a sign holds its watch, and its descriptor, until the system notices.
  keepAlive: true,
  keepAliveInitialDelay: 30_000,
};

/** What {@link createHttpApi} needs. */
export interface HttpApiOptions {
  readonly registry: ResourceRegistry;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly version: VersionInfo;
  /** The words of media types and of the metadata API; default: those that existing clients know. */
  readonly brand?: Brand;
  /** Media beside JSON, YAML and protobuf. */
  readonly formBuilders?: readonly FormBuilder[];
  readonly limits?: Partial<HttpLimits>;
  readonly checks?: readonly HealthCheck[];
  readonly authenticate?: Authenticate;
  /** Default {@link mastersOnly}. */
  readonly authorize?: Authorize;
  /**
   * Who sends requests without credentials. Default: the anonymous user. An insecure server names its administrator
   * here.
   */
  readonly insecureUser?: UserInfo;
  /**
   * Hosts, without ports, under which requests without credentials are served for the `insecureUser`, beside
   * `localhost`, `127.0.0.0/8` and `[::1]`. Requests under other hosts, and those of other web pages, are 403: a
   * browser on the same machine would send them for any page.
   */
  readonly allowedHosts?: readonly string[];
  /** `host:port` told in discovery documents; default: the Host header of the request. */
  readonly serverAddress?: string;
  /** How node agents are reached for logs, commands and proxies. Absent: such requests are answered 503. */
  readonly nodeDialer?: NodeDialer;
}

export const anonymousUser: UserInfo = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

const publicPaths: ReadonlySet<string> = new Set(['healthz', 'livez', 'readyz', 'version']);

/**
 * The authorizer of a server that was given none: the group `system:masters` may do all, others may ask for health and
 * version.
 */
export const mastersOnly: Authorize = (attributes, user) =>
  user.groups.includes('system:masters') ||
  (!attributes.isResourceRequest && attributes.verb === 'get' && publicPaths.has(attributes.path.split('/')[1] ?? ''));

/** How to prove who one is to a server with TLS, and whom to believe. */
export interface UpstreamTls {
  /** The client's certificate and key, PEM. */
  readonly cert?: string;
  readonly key?: string;
  /** Authorities of the server's certificate, PEM; absent: any certificate will do. */
  readonly ca?: string;
  /** The name that the server's certificate has to be for; default: the address. */
  readonly servername?: string;
}

/** A server that calls are passed on to. */
export interface Upstream {
  /** An IP address. */
  readonly host: string;
  readonly port: number;
  /** Absent: plain HTTP. */
  readonly tls?: UpstreamTls;
}

export interface AgentWish {
  /** True: the agent need not prove who it is. */
  readonly anyCertificate: boolean;
  /** True: the client decides what is asked, so that the addresses of this machine are out of reach. */
  readonly proxied: boolean;
  readonly signal: AbortSignal;
}

/** How the server finds the nodes of its cluster. */
export interface NodeDialer {
  /** The agent of a node. @throws StatusError when there is no such node, or no way to it */
  agent(node: string, wish: AgentWish): Promise<Upstream>;
  /** An address of a node that may be called for clients. @throws StatusError as `agent` */
  address(node: string, signal: AbortSignal): Promise<string>;
}
