import type { Authentication, Encryption, IssuerDocuments } from '@keelson/access';
import type { KeyPair } from '@keelson/certificates';
import type { ApiClient, Authorizer, ResourceClient, UserInfo } from '@keelson/core';
import type { Auditor, Brand, ResourceRegistry } from '@keelson/core/internal';
import type { Clock, Logger, Metrics } from '@keelson/core/runtime';
import { createHttpApi, type HttpBudgets, type NodeDialer, serverOptions } from '@keelson/http-koa';
import type { Node } from '@keelson/kinds';
import { settledWithin } from '../base/settled-within.ts';
import { apiVersionInfo } from '../base/version.ts';
import type { ConnectionLimits } from '../config/connection-limits.ts';
import type { FlowControlChoice } from '../config/flow-control.ts';
import type { ListenAddress } from '../config/options.ts';
import { ApiNodeDialer } from '../nodes/api-node-dialer.ts';
import type { Credentials } from '../tls/credentials.ts';
import { serveEncryption } from './encryption-endpoint.ts';
import { defaultAdvertisedAddress, KubernetesService } from './kubernetes-service.ts';
import { type ListeningServer, listenOn } from './listen.ts';

/** Options of {@link ControlPlane.listen}. */
export interface ListenOptions {
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

export interface ServedPlane {
  readonly registry: ResourceRegistry;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Health checks of the stores. */
  readonly checks: readonly { readonly name: string; readonly check: () => boolean }[];
  readonly authorizer: Authorizer;
  /** Absent when the kind Node is not served. */
  readonly nodes?: Pick<ResourceClient<Node>, 'get'>;
  /** Called with what reaches the agents of nodes. */
  readonly reachAgents: (dialer: NodeDialer) => void;
  /** Absent: the plane has no service accounts. */
  readonly serviceAccounts?: {
    readonly api: ApiClient;
    readonly documents: (address: string) => IssuerDocuments;
  };
  readonly authentication: Authentication;
  /** Undefined: nothing is recorded. */
  readonly auditor: Auditor | undefined;
  /** Undefined: nothing is encrypted. */
  readonly encryption: Encryption | undefined;
  /** Memory of responses. Absent bounds have their defaults. */
  readonly budgets: Partial<HttpBudgets> | undefined;
}

/** The user of all requests to a server without authentication. */
const insecureAdmin: UserInfo = { name: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] };
const defaultDrainMs = 5_000;

/**
 * Waits for running requests and closes the server. Requests and connections that remain at the deadline are aborted.
 */
async function closeWithin(deadlineMs: number, drained: Promise<void>, server: ListeningServer): Promise<void> {
  const began = performance.now();
  await settledWithin(deadlineMs, drained);
  await server.close(Math.max(0, deadlineMs - (performance.now() - began)));
}

/** Starts a server for a plane. */
export async function listenPlane(plane: ServedPlane, options: ListenOptions): Promise<Listening> {
  const { registry, clock, logger, metrics, checks, authorizer, nodes, serviceAccounts } = plane;
  const listenAddress = options.address ?? { host: '127.0.0.1', port: 0 };
  // The port is known when the server listens.
  let address = '';
  const { authority: authorities, local } = options.agents ?? {};
  const authority = () => (typeof authorities === 'function' ? authorities() : authorities);
  let { credentials } = options;
  const users = credentials && plane.authentication.forServer(credentials.authority);
  const identity = () => options.agents?.identity ?? credentials?.agentClient;
  const drainMs = options.drainMs ?? defaultDrainMs;
  const nodeDialer = nodes && new ApiNodeDialer({ nodes, identity, authority, local, clock });
  if (nodeDialer) plane.reachAgents(nodeDialer);
  const api = createHttpApi({
    registry,
    clock,
    logger,
    metrics,
    version: apiVersionInfo,
    checks,
    authorize: authorizer.authorize.bind(authorizer),
    ...(plane.auditor ? { auditor: plane.auditor } : {}),
    ...(nodeDialer ? { nodeDialer } : {}),
    ...(serviceAccounts ? { issuerDocuments: () => serviceAccounts.documents(address) } : {}),
    ...(options.brand ? { brand: options.brand } : {}),
    ...(options.flowControl ? { limits: options.flowControl, flowControl: options.flowControl } : {}),
    ...(plane.budgets ? { budgets: plane.budgets } : {}),
    ...(users
      ? { authenticate: users.authenticate }
      : { insecureUser: insecureAdmin, allowedHosts: options.allowedHosts ?? [] }),
  });
  if (plane.encryption !== undefined) serveEncryption(api.app, plane.encryption);
  const tls = () =>
    credentials && users && { ...credentials.server, authorities: users.authorities(), named: credentials.named };
  const server = await listenOn(listenAddress, api.listener, tls(), {
    http: serverOptions,
    limits: options.limits,
    logger: logger.child({ component: 'listener' }),
    prepare: api.acceptUpgrades,
  });
  address = server.url;
  let published: KubernetesService | undefined;
  if (serviceAccounts && options.credentials) {
    const ip = options.advertiseAddress ?? (await defaultAdvertisedAddress(listenAddress.host));
    address = `https://${ip.includes(':') ? `[${ip}]` : ip}:${server.port}`;
    published = new KubernetesService({ api: serviceAccounts.api, clock, logger }, { ip, port: server.port });
    await published.start();
  }
  const applyTls = () => {
    const current = tls();
    if (current !== undefined) server.setTls(current);
  };
  if (users) users.onChange = applyTls;
  let closing: Promise<void> | undefined;
  return {
    url: server.url,
    port: server.port,
    setCredentials(next) {
      if (users === undefined) throw new Error('a server without credentials cannot be given any later');
      credentials = next;
      // Applies the authorities, and with them the certificate.
      users.setOwnAuthorities(next.authority);
    },
    close: () => {
      users?.close();
      closing ??= closeWithin(
        drainMs,
        Promise.all([published?.stop(), api.drain()]).then(() => {}),
        server,
      );
      return closing;
    },
  };
}
