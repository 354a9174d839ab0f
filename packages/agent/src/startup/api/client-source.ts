import {
  ConnectionError,
  createHttpClient,
  type HttpApiClient,
  type HttpClientOptions,
  kubeconfigAccess,
  loadKubeconfig,
} from '@keelson/client';
import {
  type ApiClient,
  type ClientWatchEvent,
  type DiscoveredResource,
  isStatusError,
  type KindDefinition,
  type KubeObject,
  type ResourceClient,
  type WatchOptions,
} from '@keelson/core';
import { type Clock, type Logger, pause } from '@keelson/core/runtime';
import { agentName } from '../../base/agent-name.ts';
import type { ApiAccessConfig } from '../../base/config/agent-config.ts';
import type { ShownCertificate } from '../credentials/certificate-rotation.ts';
import type { CertificateStore } from '../credentials/certificate-store.ts';
import { type ClientCertificate, clientCertificate, laterOf } from '../credentials/client-certificate.ts';

export interface ClientSourceOptions {
  readonly config: ApiAccessConfig;
  /** When present, its current certificate is used instead of that of the client config, if it expires later. */
  readonly certificates?: Pick<CertificateStore, 'current'>;
  /** Timeout of one heartbeat request. */
  readonly heartbeatMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Returns a number in [0, 1), for injected failures. Default: `Math.random`. */
  readonly random?: () => number;
}

/** The clients of one agent; each has separate rate limits. */
export interface AgentClients {
  /** For all requests without a dedicated client; limited by --cluster-api-qps. */
  readonly main: ApiClient;
  /** For the node's heartbeats: without a rate limit, and with the heartbeat period as timeout. */
  readonly heartbeat: ApiClient;
  /** For events, which the event recorder limits. */
  readonly events: ApiClient;
  /**
   * For reviews of the clients of the agent's servers. It has the limits of `main`, but separately, so that many
   * unauthenticated requests to the agent do not delay its other requests.
   */
  readonly reviews: ApiClient;
  /** The certificate that all clients use. */
  readonly shown: ShownCertificate;
  close(): void;
}

/** The certificate of these options; undefined when there is none or it cannot be used. */
function certificateOf({
  clientCertificate: certificate,
  clientKey: key,
}: HttpClientOptions): ClientCertificate | undefined {
  return certificate === undefined || key === undefined
    ? undefined
    : clientCertificate(String(certificate), String(key));
}

function withCertificate(access: HttpClientOptions, { certificate, key }: ClientCertificate): HttpClientOptions {
  return { ...access, clientCertificate: certificate, clientKey: key };
}

/** Minimum time before a client config that cannot be used is read again. */
const retryLoadMs = 1000;
/** Timeout of reviews, which is short because the client of the agent waits for the result. */
const reviewMs = 10_000;

/**
 * Creates the clients of the server in the file of --clusterconfig. While that file cannot be used, every call fails
 * with the ConnectionError `Unreachable`.
 */
export function createAgentClients(options: ClientSourceOptions): AgentClients {
  const { config, certificates, heartbeatMs, clock, logger, random = Math.random } = options;
  let loaded: Promise<HttpClientOptions> | undefined;
  let failedMs = Number.NEGATIVE_INFINITY;
  let loggedProblem = '';
  let closed = false;
  const made = new Set<HttpApiClient>();
  let json = config.contentType === 'application/json';

  async function read(): Promise<HttpClientOptions> {
    try {
      const access = await kubeconfigAccess(await loadKubeconfig({ path: config.clusterconfig }), { clock });
      const given = certificateOf(access.options);
      const later = given === undefined ? undefined : laterOf(given, await certificates?.current());
      return later === undefined || later === given ? access.options : withCertificate(access.options, later);
    } catch (error) {
      loaded = undefined;
      failedMs = clock.monotonic();
      const { message } = error as Error;
      if (message !== loggedProblem)
        logger.warn('the client config cannot be used yet', { path: config.clusterconfig, problem: message });
      loggedProblem = message;
      throw new ConnectionError('Unreachable', `no usable client config: ${message}`, error);
    }
  }

  function load(): Promise<HttpClientOptions> {
    if (loaded === undefined && clock.monotonic() - failedMs < retryLoadMs) {
      return Promise.reject(new ConnectionError('Unreachable', `no usable client config: ${loggedProblem}`));
    }
    loaded ??= read();
    return loaded;
  }

  function choice(limits: Partial<HttpClientOptions>): ClientChoice {
    let client:
      | { readonly json: boolean; readonly access: HttpClientOptions; readonly made: HttpApiClient }
      | undefined;
    return {
      async current() {
        if (closed) throw new ConnectionError('Closed', 'the client was closed');
        const access = await load();
        if (client === undefined || client.json !== json || client.access !== access) {
          client = {
            json,
            access,
            made: createHttpClient({
              ...access,
              ...limits,
              userAgent: agentName,
              encoding: json ? 'json' : 'protobuf',
              clock,
              logger,
            }),
          };
          made.add(client.made);
        }
        return client.made;
      },
      refused(refusedClient) {
        if (client?.made === refusedClient && client.json) return false;
        if (!json) logger.warn('the API server does not accept protobuf; JSON is used from now on');
        json = true;
        return true;
      },
    };
  }

  const client = (limits: Partial<HttpClientOptions>): ApiClient => {
    const chance = config.chaosChance;
    return switchingClient(chance > 0 ? withChaos(choice(limits), { chance, clock, random }) : choice(limits));
  };
  const limit = config.qps === 0 ? {} : { qps: config.qps, burst: config.burst };
  return {
    main: client(limit),
    reviews: client({ ...limit, timeoutMs: reviewMs }),
    heartbeat: client({ timeoutMs: heartbeatMs }),
    events: client({}),
    shown: {
      async certificate() {
        return certificateOf(await load());
      },
      show(certificate) {
        loaded = loaded?.then((access) => withCertificate(access, certificate));
        // The server authenticates a connection by the certificate that it was opened with.
        for (const client of made) client.retire();
        made.clear();
      },
    },
    close() {
      closed = true;
      for (const client of made) client.close();
    },
  };
}

/** Selects the client to use, and another one when the server rejects the content type of its requests. */
export interface ClientChoice {
  /**
   * Returns the client to use.
   *
   * @throws ConnectionError while there is none
   */
  current(): Promise<HttpApiClient>;
  /** Called when the server rejects the content type of this client; returns true when another client is available. */
  refused(client: HttpApiClient): boolean;
}

/** True for 406 and 415: the server rejects the content type, not the request. */
function refusesContentType(error: unknown): boolean {
  return isStatusError(error) && (error.code === 406 || error.code === 415);
}

/** Returns an {@link ApiClient} that sends each request with the client that is current at that time. */
export function switchingClient(choice: ClientChoice): ApiClient {
  return {
    resource: <T extends KubeObject>(kind: KindDefinition<T>) => {
      const { group, version, names } = kind;
      const name = { group, version, resource: names.plural };
      return switchingResource<T>(choice, name, (client) => client.resource<T>(kind));
    },
    dynamic: (name, options) => switchingResource(choice, name, (client) => client.dynamic(name, options)),
    discover: () => run(choice, (client): Promise<readonly DiscoveredResource[]> => client.discover()),
  };
}

async function run<R>(choice: ClientChoice, call: (client: HttpApiClient) => Promise<R>): Promise<R> {
  for (;;) {
    const client = await choice.current();
    try {
      return await call(client);
    } catch (error) {
      if (!refusesContentType(error) || !choice.refused(client)) throw error;
    }
  }
}

function switchingResource<T extends KubeObject>(
  choice: ClientChoice,
  resourceName: ResourceClient<T>['resourceName'],
  pick: (client: HttpApiClient) => ResourceClient<T>,
): ResourceClient<T> {
  const call = <R>(operation: (resource: ResourceClient<T>) => Promise<R>) =>
    run(choice, (client) => operation(pick(client)));

  async function* watch(options?: WatchOptions): AsyncGenerator<ClientWatchEvent<T>> {
    for (;;) {
      const client = await choice.current();
      try {
        yield* pick(client).watch(options);
        return;
      } catch (error) {
        // The server rejects a watch before its first event, so no event is repeated.
        if (!refusesContentType(error) || !choice.refused(client)) throw error;
      }
    }
  }

  return {
    resourceName,
    namespace: (namespace) => switchingResource(choice, resourceName, (client) => pick(client).namespace(namespace)),
    create: (...rest) => call((resource) => resource.create(...rest)),
    get: (...rest) => call((resource) => resource.get(...rest)),
    list: (...rest) => call((resource) => resource.list(...rest)),
    update: (...rest) => call((resource) => resource.update(...rest)),
    patch: (...rest) => call((resource) => resource.patch(...rest)),
    apply: (...rest) => call((resource) => resource.apply(...rest)),
    delete: (...rest) => call((resource) => resource.delete(...rest)),
    deleteCollection: (...rest) => call((resource) => resource.deleteCollection(...rest)),
    watch,
    getSubresource: (...rest) => call((resource) => resource.getSubresource(...rest)),
    updateSubresource: (...rest) => call((resource) => resource.updateSubresource(...rest)),
    patchSubresource: (...rest) => call((resource) => resource.patchSubresource(...rest)),
    createSubresource: (...rest) => call((resource) => resource.createSubresource(...rest)),
  };
}

/** Maximum injected delay. */
const maxDelayMs = 1_000;

export interface ChaosOptions {
  /** 0..1: the probability that a request is delayed, and the probability that it fails. */
  readonly chance: number;
  readonly clock: Clock;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
}

/**
 * Injects delays of requests, and failures as if the connection was reset before the server received the request. It is
 * used to test the error handling of callers.
 */
export function withChaos(choice: ClientChoice, { chance, clock, random }: ChaosOptions): ClientChoice {
  const never = new AbortController().signal;
  return {
    async current() {
      if (random() < chance) await pause(clock, random() * maxDelayMs, never);
      if (random() < chance) throw new ConnectionError('Unreachable', 'connection reset, injected by --chaos-chance');
      return choice.current();
    },
    refused: (client) => choice.refused(client),
  };
}
