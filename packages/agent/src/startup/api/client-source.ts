import {
  ConnectionError,
  createHttpClient,
  type HttpApiClient,
  type HttpClientOptions,
  kubeconfigAccess,
  loadKubeconfig,
} from '@keelson/client';
import type { ApiClient, Clock, Logger } from '@keelson/core';
import { agentName } from '../../base/agent-name.ts';
import type { ApiAccessConfig } from '../../base/config/agent-config.ts';
import type { ShownCertificate } from '../credentials/certificate-rotation.ts';
import type { CertificateStore } from '../credentials/certificate-store.ts';
import { type ClientCertificate, clientCertificate, laterOf } from '../credentials/client-certificate.ts';
import { type ClientChoice, switchingClient } from './switching-client.ts';
import { withChaos } from './with-chaos.ts';

export interface ClientSourceOptions {
  readonly config: ApiAccessConfig;
  /** Present: the certificate in use there is shown rather than that of the config file. */
  readonly certificates?: Pick<CertificateStore, 'current'>;
  /** Longest time of one heartbeat. */
  readonly heartbeatMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** 0..1, for made-up failures. */
  readonly random?: () => number;
}

/** All clients of one agent, each with limits of its own. */
export interface AgentClients {
  /** For everything but what has a client of its own; limited by --cluster-api-qps. */
  readonly main: ApiClient;
  /** For the node's heartbeats, which nothing may hold up: without limit, and no slower than a period. */
  readonly heartbeat: ApiClient;
  /** For events, which have a limit of their own. */
  readonly events: ApiClient;
  /**
   * For reviews of who talks to the agent: limited like `main`, but apart, so that a flood of strangers holds up nobody
   * else.
   */
  readonly reviews: ApiClient;
  /** What all of them show. */
  readonly shown: ShownCertificate;
  close(): void;
}

/** The certificate that these options show; undefined when there is none that can be used. */
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

/** A file that cannot be used is looked at again no sooner than this. */
const retryLoadMs = 1000;
/** Whoever waits to be let in gives up sooner than other callers. */
const reviewMs = 10_000;

/**
 * Makes the clients of what --clusterconfig says; as long as that file cannot be used, every call fails as if no server
 * was there.
 */
export function createAgentClients(options: ClientSourceOptions): AgentClients {
  const { config, certificates, heartbeatMs, clock, logger, random = Math.random } = options;
  let loaded: Promise<HttpClientOptions> | undefined;
  let failedMs = Number.NEGATIVE_INFINITY;
  let told = '';
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
      if (message !== told)
        logger.warn('the client config cannot be used yet', { path: config.clusterconfig, problem: message });
      told = message;
      throw new ConnectionError('Unreachable', `no usable client config: ${message}`, error);
    }
  }

  function load(): Promise<HttpClientOptions> {
    if (loaded === undefined && clock.monotonic() - failedMs < retryLoadMs) {
      return Promise.reject(new ConnectionError('Unreachable', `no usable client config: ${told}`));
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
      refused(refusing) {
        if (client?.made === refusing && client.json) return false;
        if (!json) logger.warn('the API server does not take protobuf; going on with JSON');
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
        // Connections are known by the certificate that they were opened with.
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
