import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Authentication, Encryption, IssuerDocuments, ServerAuthentication } from '@keelson/access';
import type { KeyPair } from '@keelson/certificates';
import type { ApiClient, Authorizer, ResourceClient, UserInfo } from '@keelson/core';
import { type Auditor, type ResourceRegistry, UsageError } from '@keelson/core/internal';
import type { Clock, Logger, Metrics, Tracing } from '@keelson/core/runtime';
import type { AggregatedApis } from '@keelson/extensions';
import {
  createHttpApi,
  type FlowControlOptions,
  type HttpApi,
  type HttpBudgets,
  type NodeDialer,
  serverOptions,
  serveWithoutUpgrade,
} from '@keelson/http-koa';
import type { Node } from '@keelson/kinds';
import { settledWithin } from '../base/settled-within.ts';
import { apiVersionInfo } from '../base/version.ts';
import { ApiNodeDialer } from '../nodes/api-node-dialer.ts';
import { tracedListener } from '../observe/traced-requests.ts';
import type { Credentials } from '../tls/credentials.ts';
import { publishAuthenticationConfig } from './authentication-config-map.ts';
import { serveEncryption } from './encryption-endpoint.ts';
import { defaultAdvertisedAddress, KubernetesService } from './kubernetes-service.ts';
import { type ListeningServer, listenOn, type SharedSocket } from './listen.ts';
import type { HandlerOptions, Listening, ListenOptions, PlaneHandler } from './listen-options.ts';
import { ownRoutes, type PlaneAccess } from './request-state.ts';

export interface ServedPlane {
  readonly plane: PlaneAccess;
  readonly registry: ResourceRegistry;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Records requests as spans. Absent: requests are not traced. */
  readonly tracing?: Tracing;
  /** Health checks of the stores. */
  readonly checks: readonly { readonly name: string; readonly check: () => boolean }[];
  readonly authorizer: Authorizer;
  /** Client for nodes, whose agents the server connects to. Absent when the kind Node is not served. */
  readonly nodes?: Pick<ResourceClient<Node>, 'get'>;
  /** The API groups of other servers. Absent when the kind APIService is not served. */
  readonly aggregated?: AggregatedApis;
  /** Called with the client certificate for aggregated servers. */
  readonly useFrontProxy: (identity: KeyPair | undefined) => void;
  /** Called with the dialer that connects to the agents of nodes. */
  readonly reachAgents: (dialer: NodeDialer) => void;
  /** Client and issuer documents of service accounts. Absent: the plane has no service accounts. */
  readonly serviceAccounts?: {
    readonly api: ApiClient;
    readonly documents: (address: string) => IssuerDocuments;
  };
  readonly authentication: Authentication;
  /** Records requests for the audit. Undefined: nothing is recorded. */
  readonly auditor: Auditor | undefined;
  /** Encrypts stored objects. Undefined: nothing is encrypted. */
  readonly encryption: Encryption | undefined;
  /** Memory of responses. Absent bounds have their defaults. */
  readonly budgets: Partial<HttpBudgets> | undefined;
  /** Follows the flow control of the API. Undefined: the built-in one and that of the options apply. */
  readonly followFlowRules: FlowControlOptions['follow'] | undefined;
}

/** The user of all requests to a server without authentication. */
const insecureAdmin: UserInfo = { name: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] };
const defaultDrainMs = 5_000;

/**
 * Waits for running requests and closes the server. Requests and connections that remain at the deadline are aborted.
 */
async function closeWithin(deadlineMs: number, drained: Promise<void>, server: ListeningServer): Promise<void> {
  // Not injected: the deadline of a shutdown, which the clock of a test would stop.
  const began = performance.now();
  await settledWithin(deadlineMs, drained);
  await server.close(Math.max(0, deadlineMs - (performance.now() - began)));
}

/** The API of a plane, before a server is given to it. */
interface PlaneApi {
  readonly api: HttpApi;
  /** Sources of the users; undefined when every user is the administrator. */
  readonly users: ServerAuthentication | undefined;
}

interface PlaneApiOptions extends Omit<HandlerOptions, 'drainMs' | 'credentials'> {
  /** Own authorities of users, PEM, '' for none; undefined: every user is the administrator. */
  readonly authorities: string | undefined;
  readonly identity: () => KeyPair | undefined;
  /** The address in the documents of the issuer of service account tokens. */
  readonly issuerAddress: () => string;
}

function planeApi(plane: ServedPlane, options: PlaneApiOptions): PlaneApi {
  const { registry, clock, logger, metrics, checks, authorizer, nodes, serviceAccounts } = plane;
  const { authority: authorities, local } = options.agents ?? {};
  const authority = () => (typeof authorities === 'function' ? authorities() : authorities);
  const users = options.authorities === undefined ? undefined : plane.authentication.forServer(options.authorities);
  const nodeDialer = nodes && new ApiNodeDialer({ nodes, identity: options.identity, authority, local, clock });
  if (nodeDialer) plane.reachAgents(nodeDialer);
  const { authenticate: given } = options;
  const api = createHttpApi({
    registry,
    clock,
    logger,
    metrics,
    version: apiVersionInfo,
    keepAsyncContext: plane.tracing !== undefined,
    checks,
    authorize: authorizer.authorize.bind(authorizer),
    ...(options.middleware || options.routes ? { own: ownRoutes(options, plane) } : {}),
    prefix: options.prefix ?? '',
    ...(plane.aggregated ? { aggregated: plane.aggregated } : {}),
    ...(plane.auditor ? { auditor: plane.auditor } : {}),
    ...(nodeDialer ? { nodeDialer } : {}),
    ...(serviceAccounts ? { issuerDocuments: () => serviceAccounts.documents(options.issuerAddress()) } : {}),
    ...(options.brand ? { brand: options.brand } : {}),
    ...(options.flowControl ? { limits: options.flowControl } : {}),
    flowControl: { ...options.flowControl, ...(plane.followFlowRules ? { follow: plane.followFlowRules } : {}) },
    ...(plane.budgets ? { budgets: plane.budgets } : {}),
    ...(users
      ? {
          authenticate: given
            ? async (request) => (await given(request)) ?? users.authenticate(request)
            : users.authenticate,
        }
      : { insecureUser: insecureAdmin, allowedHosts: options.allowedHosts ?? [] }),
  });
  if (plane.encryption !== undefined) serveEncryption(api, plane.encryption);
  const { tracing } = plane;
  return { api: tracing ? { ...api, listener: tracedListener(api.listener, tracing) } : api, users };
}

/**
 * Writes the ConfigMap extension-apiserver-authentication. A failure does not stop the server: programs that read the
 * ConfigMap wait until it exists.
 */
async function publishAuthentication({ serviceAccounts, clock, logger }: ServedPlane, credentials: Credentials) {
  if (serviceAccounts === undefined) return;
  await publishAuthenticationConfig(serviceAccounts.api, credentials, clock).catch((err: unknown) => {
    logger.warn('the ConfigMap extension-apiserver-authentication was not written', { err });
  });
}

/** Starts a server for a plane. With `socket` it accepts the connections of a socket that listens already. */
export async function listenPlane(
  plane: ServedPlane,
  options: ListenOptions,
  socket: SharedSocket | undefined,
): Promise<Listening> {
  const { clock, logger, serviceAccounts } = plane;
  const listenAddress = options.address ?? { host: '127.0.0.1', port: 0 };
  // The port is known when the server listens.
  let address = '';
  let { credentials } = options;
  const drainMs = options.drainMs ?? defaultDrainMs;
  const { api, users } = planeApi(plane, {
    ...options,
    authorities: credentials?.authority,
    identity: () => options.agents?.identity ?? credentials?.agentClient,
    issuerAddress: () => address,
  });
  const tls = () =>
    credentials && users && { ...credentials.server, authorities: users.authorities(), named: credentials.named };
  plane.useFrontProxy(credentials?.frontProxy?.client);
  const server = await listenOn(listenAddress, api.listener, tls(), {
    http: serverOptions,
    limits: options.limits,
    logger: logger.child({ component: 'listener' }),
    prepare: api.acceptUpgrades,
    socket,
  });
  address = server.url;
  let published: KubernetesService | undefined;
  if (serviceAccounts && options.credentials) {
    const ip = options.advertiseAddress ?? (await defaultAdvertisedAddress(listenAddress.host));
    address = `https://${ip.includes(':') ? `[${ip}]` : ip}:${server.port}`;
    published = new KubernetesService({ api: serviceAccounts.api, clock, logger }, { ip, port: server.port });
    await published.start();
    await publishAuthentication(plane, options.credentials);
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
      if (users === undefined)
        throw new Error('a server that was started without credentials cannot be given credentials later');
      credentials = next;
      plane.useFrontProxy(next.frontProxy?.client);
      if (published) void publishAuthentication(plane, next);
      // The change of the authorities calls `applyTls`, which applies the certificate as well.
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

/**
 * Prepares a plane to be mounted in a server of the program.
 *
 * @throws UsageError for a prefix that is no path, and for routes on paths of the API
 */
export function mountPlane(plane: ServedPlane, options: HandlerOptions): PlaneHandler {
  const { prefix = '', insecure = false, credentials, authenticate } = options;
  if (prefix !== '' && !/^(?:\/[\w.~-]+)+$/.test(prefix))
    throw new UsageError(
      `prefix: ${JSON.stringify(prefix)} is not a path such as /cluster, without a slash at its end`,
    );
  if (insecure && (credentials !== undefined || authenticate !== undefined))
    throw new UsageError('the option insecure excludes credentials and authenticate');
  const { api, users } = planeApi(plane, {
    ...options,
    authorities: insecure ? undefined : (credentials?.authority ?? ''),
    identity: () => options.agents?.identity ?? credentials?.agentClient,
    issuerAddress: () => '',
  });
  let closing: Promise<void> | undefined;
  return {
    listener: (request, response, next) => {
      const target = mountedTarget(request, prefix);
      if (target !== undefined) {
        request.url = target;
        return api.listener(request, response);
      }
      if (next !== undefined) return next();
      response.writeHead(404, { 'Content-Type': 'text/plain; charset=utf-8' }).end('404 page not found\n');
    },
    upgrade: (request, socket, head) => {
      const received = request.url ?? '/';
      const target = mountedTarget(request, prefix);
      // Not of `socket`, which is another stream on Node 26 while a body is received.
      const server = serverOf(request.socket);
      if (target === undefined) {
        // No other listener handles the upgrade: the request is served without it, as Node does without any listener.
        if (server?.listenerCount('upgrade') === 1) serveWithoutUpgrade(server, request, { socket, head });
        return false;
      }
      request.url = target;
      if (api.upgrade(request, socket, head)) return true;
      request.url = received;
      if (server === undefined) socket.destroy();
      else serveWithoutUpgrade(server, request, { socket, head });
      return true;
    },
    close: () => {
      users?.close();
      closing ??= settledWithin(options.drainMs ?? defaultDrainMs, api.drain()).then(() => {});
      return closing;
    },
  };
}

/**
 * The path and query of a request relative to the prefix; undefined for a request outside of the prefix. Express and
 * connect may have removed the prefix already.
 */
function mountedTarget(request: IncomingMessage & { readonly originalUrl?: string }, prefix: string) {
  const { url = '/', originalUrl } = request;
  const below = (target: string): string | undefined => {
    if (!target.startsWith(prefix)) return undefined;
    const rest = target.slice(prefix.length);
    if (rest === '' || rest.startsWith('?')) return `/${rest}`;
    return rest.startsWith('/') ? rest : undefined;
  };
  return originalUrl !== undefined && originalUrl !== url && below(originalUrl) === url ? url : below(url);
}

/** The server that accepted a connection; Node sets it on the socket. */
function serverOf(socket: Socket): Server | undefined {
  return (socket as Socket & { readonly server?: Server }).server;
}
