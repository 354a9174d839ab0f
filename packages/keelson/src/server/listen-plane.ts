import type {
  AuthenticateToken,
  Authorizer,
  Brand,
  Clock,
  Logger,
  Metrics,
  ResourceClient,
  ResourceRegistry,
  UserInfo,
} from '@keelson/core';
import { createHttpApi, type HttpBudgets, serverOptions } from '@keelson/http-koa';
import type { Node } from '@keelson/kinds';
import { authentication } from '../auth/authentication.ts';
import { settledWithin } from '../base/settled-within.ts';
import { apiVersionInfo } from '../base/version.ts';
import type { ConnectionLimits } from '../config/connection-limits.ts';
import type { ListenAddress } from '../config/options.ts';
import { ApiNodeDialer } from '../nodes/api-node-dialer.ts';
import type { Credentials } from '../tls/credentials.ts';
import type { KeyPair } from '../tls/key-pair.ts';
import { type ListeningServer, listenOn } from './listen.ts';

/** How a plane is served. */
export interface ListenOptions {
  /** Default `127.0.0.1`, port chosen by the system. */
  readonly address?: ListenAddress;
  /**
   * Serves TLS and knows users by their client certificates, or by their tokens. Absent: plain HTTP, everybody is the
   * administrator; loopback only.
   */
  readonly credentials?: Credentials;
  /** The words of media types and of the metadata API. Default: those that existing clients know. */
  readonly brand?: Brand;
  /** Hosts, without ports, that plain HTTP is served under beside those of the loopback interface. */
  readonly allowedHosts?: readonly string[];
  /**
   * Milliseconds for running requests to finish and connections to close when the server closes; then the rest is cut.
   * Default 5,000.
   */
  readonly drainMs?: number;
  /** Bounds on connections. Default: those of {@link ConnectionLimits}. */
  readonly limits?: Partial<ConnectionLimits>;
  /** How node agents are reached for logs, commands and proxies. */
  readonly agents?: AgentAccess;
}

/** How the server and the agents of nodes know each other. */
export interface AgentAccess {
  /** By which agents know the server. Default: that of the credentials; plain HTTP servers have none. */
  readonly identity?: KeyPair;
  /** Authorities of the agents' certificates, PEM. Default: any certificate will do. */
  readonly authority?: string;
  /** Ports at 127.0.0.1 of the agents that run beside the server, by node. They may come and go. */
  readonly local?: ReadonlyMap<string, number>;
}

/** A plane that is being served. */
export interface Listening {
  readonly url: string;
  readonly port: number;
  /**
   * Ends watches cleanly, cuts what is passed on to nodes, lets running requests finish, then closes; within `drainMs`.
   */
  close(): Promise<void>;
}

export interface ServedPlane {
  readonly registry: ResourceRegistry;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Health of what the plane stands on. */
  readonly checks: readonly { readonly name: string; readonly check: () => boolean }[];
  readonly authorizer: Authorizer;
  /** Absent where there are no nodes. */
  readonly nodes?: Pick<ResourceClient<Node>, 'get'>;
  /** Undefined: no bearer token is known. */
  readonly authenticateToken: AuthenticateToken | undefined;
  /** Memory of responses. Absent bounds have their defaults. */
  readonly budgets: Partial<HttpBudgets> | undefined;
}

/** Who everybody is where nobody is asked. */
const insecureAdmin: UserInfo = { name: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] };
const defaultDrainMs = 5_000;

/** Waits for running requests, then closes the server; what is not done by the deadline is cut. */
async function closeWithin(deadlineMs: number, drained: Promise<void>, server: ListeningServer): Promise<void> {
  const began = performance.now();
  await settledWithin(deadlineMs, drained);
  await server.close(Math.max(0, deadlineMs - (performance.now() - began)));
}

/** Opens a listening server for a plane. */
export async function listenPlane(plane: ServedPlane, options: ListenOptions): Promise<Listening> {
  const { registry, clock, logger, metrics, checks, authorizer, authenticateToken, nodes } = plane;
  const { identity = options.credentials?.agentClient, authority, local } = options.agents ?? {};
  const drainMs = options.drainMs ?? defaultDrainMs;
  const api = createHttpApi({
    registry,
    clock,
    logger,
    metrics,
    version: apiVersionInfo,
    checks,
    authorize: authorizer.authorize.bind(authorizer),
    ...(nodes ? { nodeDialer: new ApiNodeDialer({ nodes, identity, authority, local, clock }) } : {}),
    ...(options.brand ? { brand: options.brand } : {}),
    ...(plane.budgets ? { budgets: plane.budgets } : {}),
    ...(options.credentials
      ? { authenticate: authentication(authenticateToken, clock) }
      : { insecureUser: insecureAdmin, allowedHosts: options.allowedHosts ?? [] }),
  });
  const server = await listenOn(options.address ?? { host: '127.0.0.1', port: 0 }, api.listener, options.credentials, {
    http: serverOptions,
    limits: options.limits,
    logger: logger.child({ component: 'listener' }),
    prepare: api.acceptUpgrades,
  });
  let closing: Promise<void> | undefined;
  return {
    url: server.url,
    port: server.port,
    close: () => {
      closing ??= closeWithin(drainMs, api.drain(), server);
      return closing;
    },
  };
}
