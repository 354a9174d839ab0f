import type { Authorizer, Brand, Clock, Logger, Metrics, ResourceRegistry, UserInfo } from '@keelson/core';
import { createHttpApi, serverOptions } from '@keelson/http-koa';
import { authenticateClientCertificate } from '../auth/client-certificate.ts';
import type { ListenAddress } from '../config/options.ts';
import type { Credentials } from '../tls/credentials.ts';
import { apiVersionInfo } from '../version.ts';
import { listenOn } from './listen.ts';

/** How a plane is served. */
export interface ListenOptions {
  /** Default `127.0.0.1`, port chosen by the system. */
  readonly address?: ListenAddress;
  /** Serves TLS and knows users by their client certificates. Absent: plain HTTP, everybody is the administrator; loopback only. */
  readonly credentials?: Credentials;
  /** The words of media types and of the metadata API. Default: those that existing clients know. */
  readonly brand?: Brand;
  /** How long running requests may take to finish when the server closes. Default 5 s. */
  readonly drainMs?: number;
}

/** A plane that is being served. */
export interface Listening {
  readonly url: string;
  readonly port: number;
  /** Ends watches cleanly, lets running requests finish, then closes. */
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
}

/** Who everybody is where nobody is asked. */
const insecureAdmin: UserInfo = { name: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] };
const defaultDrainMs = 5_000;

/** Opens a listening server for a plane. */
export async function listenPlane(plane: ServedPlane, options: ListenOptions): Promise<Listening> {
  const { registry, clock, logger, metrics, checks, authorizer } = plane;
  const drainMs = options.drainMs ?? defaultDrainMs;
  const api = createHttpApi({
    registry,
    clock,
    logger,
    metrics,
    version: apiVersionInfo,
    checks,
    authorize: (attributes, user) => authorizer.authorize(attributes, user),
    ...(options.brand ? { brand: options.brand } : {}),
    ...(options.credentials ? { authenticate: authenticateClientCertificate } : { insecureUser: insecureAdmin }),
  });
  const server = await listenOn(
    options.address ?? { host: '127.0.0.1', port: 0 },
    api.listener,
    options.credentials,
    serverOptions,
  );
  let closing: Promise<void> | undefined;
  return {
    url: server.url,
    port: server.port,
    close: () => {
      closing ??= api.drain().then(() => server.close(drainMs));
      return closing;
    },
  };
}
