import {
  ConnectionError,
  createHttpClient,
  type HttpApiClient,
  type HttpClientOptions,
  kubeconfigAccess,
  loadKubeconfig,
} from '@keelson/client';
import type { ApiClient } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import { agentName } from '../../base/agent-name.ts';
import type { ApiAccessConfig } from '../../base/config/agent-config.ts';
import type { ShownCertificate } from '../credentials/certificate-rotation.ts';
import type { CertificateStore } from '../credentials/certificate-store.ts';
import { type ClientCertificate, clientCertificate, laterOf } from '../credentials/client-certificate.ts';
import { type ClientChoice, switchingClient } from './switching-client.ts';
import { withChaos } from './with-chaos.ts';

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
