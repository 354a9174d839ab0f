import type { IncomingMessage, ServerOptions } from 'node:http';
import type { UserInfo } from '@keelson/core';
import type { Auditor, Brand, FormBuilder, RequestAttributes, ResourceRegistry } from '@keelson/core/internal';
import type { Clock, Logger, Metrics } from '@keelson/core/runtime';
import type { AggregatedApis } from './aggregated-apis.ts';
import type { Exchange } from './exchange.ts';
import type { FlowControlOptions } from './flow-options.ts';
import type { KoaMiddleware } from './koa-types.ts';

/** Result of an authorizer; a boolean is a decision without a reason. */
export type Authorization = boolean | { readonly allowed: boolean; readonly reason?: string };

/**
 * Authenticates a request. Returns undefined when it contains no credentials (the anonymous user, or the
 * `insecureUser`); throws `statusErrors.unauthorized()` for invalid credentials.
 */
export type Authenticate = (request: IncomingMessage) => UserInfo | undefined | Promise<UserInfo | undefined>;

/**
 * Decides whether a user may perform a request. A PUT that is about to create an object is authorized a second time
 * with the verb `create`.
 */
export type Authorize = (attributes: RequestAttributes, user: UserInfo) => Authorization | Promise<Authorization>;

/** One check behind `/healthz`, `/livez` and `/readyz`. */
export interface HealthCheck {
  /** Path segment under which the check can be requested alone. */
  readonly name: string;
  /** Further path segments under which an endpoint serves the check alone, as names of Kubernetes do. */
  readonly aliases?: Readonly<Partial<Record<'healthz' | 'livez' | 'readyz', readonly string[]>>>;
  /** Throws, rejects or returns false when unhealthy. */
  check(): boolean | undefined | void | Promise<boolean | undefined | void>;
  /** Endpoints that include the check; default: `readyz` alone. */
  readonly on?: readonly ('healthz' | 'livez' | 'readyz')[];
}

/** Content of `/version`; absent optional fields have neutral values. */
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
  /** Greatest size of a request body. */
  readonly bodyBytes: number;
  /** Concurrent requests, without watches and connect requests: the seats that priority levels share. */
  readonly requestsInFlight: number;
  /**
   * Time in milliseconds that the oldest request of a user waits for the event loop, beyond which new requests of this
   * user are answered with 429; health checks and leases are exempt.
   */
  readonly overloadDelayMs: number;
  /** As `overloadDelayMs`, for members of `system:masters`. */
  readonly overloadDelayMastersMs: number;
  /** Timeout of a request that is neither a watch nor a connect request. */
  readonly requestTimeoutMs: number;
  /** Timeout of the operation itself, within the timeout of the request. */
  readonly handlerTimeoutMs: number;
  /** Least duration of a watch without `timeoutSeconds`; the actual duration is random up to twice this value. */
  readonly watchTimeoutMs: number;
  /** Interval of bookmarks on a watch that allows them. */
  readonly bookmarkIntervalMs: number;
  /** Concurrent watches of all users. */
  readonly watches: number;
  /** Concurrent watches of one user; `system:masters` is exempt. */
  readonly watchesPerUser: number;
  /** Concurrent connect requests to nodes and pods, including tunnels. */
  readonly connects: number;
  /** Concurrent connect requests of one user; `system:masters` is exempt. */
  readonly connectsPerUser: number;
  /** Timeout for connecting to a node or pod, including TLS. */
  readonly dialTimeoutMs: number;
  /** Timeout for the head of a node agent's response. */
  readonly agentAnswerMs: number;
  /** Smallest response that is compressed when the client accepts gzip. */
  readonly gzipBytes: number;
}

export const defaultLimits: HttpLimits = {
  bodyBytes: 3 * 1024 * 1024,
  requestsInFlight: 600,
  overloadDelayMs: 250,
  overloadDelayMastersMs: 1000,
  requestTimeoutMs: 60_000,
  handlerTimeoutMs: 34_000,
  watchTimeoutMs: 1_800_000,
  bookmarkIntervalMs: 60_000,
  watches: 20_000,
  watchesPerUser: 1000,
  connects: 5_000,
  connectsPerUser: 1000,
  dialTimeoutMs: 10_000,
  agentAnswerMs: 30_000,
  gzipBytes: 128 * 1024,
};

/** Bounds, in bytes, on the memory that responses keep to save repeated work. */
export interface HttpBudgets {
  /** Free buffers for lists whose bytes are created for one response. Default 4 MiB. */
  readonly listBuffersBytes: number;
  /** Compressed parts of lists that several responses share: about a tenth of their JSON. Default 16 MiB. */
  readonly compressedListsBytes: number;
  /** Response bodies of objects that are read repeatedly. Default 4 MiB. */
  readonly recentBodiesBytes: number;
}

export const defaultHttpBudgets: HttpBudgets = {
  listBuffersBytes: 4 * 1024 * 1024,
  compressedListsBytes: 16 * 1024 * 1024,
  recentBodiesBytes: 4 * 1024 * 1024,
};

/**
 * Options for the `http.Server` (or `https.Server`) that uses the listener: 10 s for the headers, 32 KiB of headers,
 * and a timeout for the body. With these alone Node also applies the header timeout to connections that have not been
 * used yet, and answers 408 on them; `listen` of a control plane treats those like any idle connection.
 */
export const serverOptions: ServerOptions = {
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  maxHeaderSize: 32 * 1024,
  keepAliveTimeout: 90_000,
  connectionsCheckingInterval: 2_000,
  // Detects clients that disappeared without closing their connection; their watches would stay open otherwise.
  keepAlive: true,
  keepAliveInitialDelay: 30_000,
};

/** Middleware and routes beside the API, and what they find in `ctx.state`. */
export interface OwnRoutes {
  /**
   * Runs for every HTTP request that has passed the filters, those of the resource API included, in this order. With
   * an empty list resource requests are passed directly to their handler.
   */
  readonly middleware?: readonly KoaMiddleware[];
  /** Routers of `@koa/router`. No route may match a path of the API. */
  readonly routes?: readonly RouteSource[];
  /** First segments of further paths that no route may have. */
  readonly reserved?: readonly string[];
  /** Creates `ctx.state`; `readBody` reads the body of the request within the limit of the API. */
  readonly state?: (exchange: Exchange, readBody: () => Promise<Buffer>) => object;
}

/** The part of a router of `@koa/router` that is used. */
export interface RouteSource {
  readonly stack: readonly {
    readonly methods: readonly string[];
    readonly path: string | RegExp;
    readonly regexp: RegExp;
  }[];
  // biome-ignore lint/suspicious/noExplicitAny: each router has types of its own for the state and the context
  routes(): any;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  allowedMethods(): any;
}

/** Dependencies and settings of {@link createHttpApi}. */
export interface HttpApiOptions {
  readonly registry: ResourceRegistry;
  readonly clock: Clock;
  /**
   * Handlers run in the asynchronous context in which the listener was called, which tracing requires. Costs CPU time.
   * Default false.
   */
  readonly keepAsyncContext?: boolean;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly version: VersionInfo;
  /** Names used in media types and in the metadata API; default: those of Kubernetes. */
  readonly brand?: Brand;
  /** Media types other than JSON, YAML and protobuf. */
  readonly formBuilders?: readonly FormBuilder[];
  readonly limits?: Partial<HttpLimits>;
  /** Absent options are those of {@link defaultFlowControl}. */
  readonly flowControl?: Partial<FlowControlOptions>;
  /** Absent bounds are those of {@link defaultHttpBudgets}. */
  readonly budgets?: Partial<HttpBudgets>;
  readonly checks?: readonly HealthCheck[];
  readonly authenticate?: Authenticate;
  /** Authorizes requests. Default: {@link mastersOnly}. */
  readonly authorize?: Authorize;
  /** Records requests. Absent: nothing is recorded. */
  readonly auditor?: Auditor;
  /**
   * User of requests without credentials. Default: the anonymous user. An insecure server sets its administrator here.
   */
  readonly insecureUser?: UserInfo;
  /**
   * Hosts, without ports, under which requests without credentials are served for the `insecureUser`, beside
   * `localhost`, `127.0.0.0/8` and `[::1]`. Requests under other hosts, and those of other web pages, are 403: a
   * browser on the same machine would send them for any page.
   */
  readonly allowedHosts?: readonly string[];
  /** `host:port` in discovery documents; default: the Host header of the request. */
  readonly serverAddress?: string;
  /**
   * The JSON documents by which other services verify the tokens of service accounts, served at
   * `/.well-known/openid-configuration` and `/openid/v1/jwks`. Absent: these paths do not exist.
   */
  readonly issuerDocuments?: () => { readonly configuration: string; readonly keys: string };
  /** How node agents are reached for logs, commands and proxies. Absent: such requests are answered 503. */
  readonly nodeDialer?: NodeDialer;
  /** API groups that other servers serve. */
  readonly aggregated?: AggregatedApis;
  /** Middleware and routes of the program that serves the API. */
  readonly own?: OwnRoutes;
  /** Path below which the API is mounted, e.g. `/cluster`; documents refer to each other below it. Default ''. */
  readonly prefix?: string;
}

export const anonymousUser: UserInfo = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

const publicPaths: ReadonlySet<string> = new Set(['healthz', 'livez', 'readyz', 'version']);

/**
 * The default authorizer: members of `system:masters` may do everything, other users may request health and version.
 */
export const mastersOnly: Authorize = (attributes, user) =>
  user.groups.includes('system:masters') ||
  (!attributes.isResourceRequest && attributes.verb === 'get' && publicPaths.has(attributes.path.split('/')[1] ?? ''));

/** Credentials of this server for an upstream, and the authorities that it trusts. */
export interface UpstreamTls {
  /** The client's certificate and key, PEM. */
  readonly cert?: string;
  readonly key?: string;
  /** Authorities of the server's certificate, PEM; absent: the certificate is not verified. */
  readonly ca?: string;
  /** The name that the server's certificate must contain; default: the address. */
  readonly servername?: string;
}

/** The server that a call is forwarded to. */
export interface Upstream {
  /** An IP address. */
  readonly host: string;
  readonly port: number;
  /** TLS options of the connection; absent: plain HTTP. */
  readonly tls?: UpstreamTls;
}

export interface AgentDialOptions {
  /** True: the certificate of the agent is not verified. */
  readonly anyCertificate: boolean;
  /** True for a call whose path the client chooses. It must not be sent to an address of this machine. */
  readonly proxied: boolean;
  readonly signal: AbortSignal;
}

/** Finds the nodes of the cluster. */
export interface NodeDialer {
  /** The agent of a node. @throws StatusError when the node does not exist or cannot be reached */
  agent(node: string, wish: AgentDialOptions): Promise<Upstream>;
  /** An address of a node that clients may call. @throws StatusError as `agent` */
  address(node: string, signal: AbortSignal): Promise<string>;
}
