import { join } from 'node:path';
import type { CertificateSigner } from '@keelson/controllers';
import type { ApiClient } from '@keelson/core';
import { UsageError } from '@keelson/core/internal';
import { type Metrics, systemClock } from '@keelson/core/runtime';
import { createPinoLogger } from '@keelson/pino-logger';
import { auditOptions } from '../config/audit-options.ts';
import { authenticationOptions } from '../config/authentication-options.ts';
import { authorizationOptions } from '../config/authorization-options.ts';
import { loadControllers, loadKinds } from '../config/load-modules.ts';
import type { ServerOptions } from '../config/options.ts';
import { chooseControllers } from '../control-plane/controller-choice.ts';
import { createControlPlane } from '../control-plane/create-control-plane.ts';
import { readCertificates } from '../nodes/api-node-dialer.ts';
import { createPromMetrics } from '../observe/prom-metrics.ts';
import type { OpenTelemetry } from '../opentelemetry.ts';
import { delegatedAuthentication } from '../server/authentication-config-map.ts';
import { defaultAdvertisedAddress } from '../server/kubernetes-service.ts';
import {
  authorityFile,
  type Credentials,
  credentialsSigner,
  loadCredentials,
  readServingCertificate,
} from '../tls/credentials.ts';
import { kubeconfigFile, writeKubeconfig } from '../tls/kubeconfig.ts';
import { CredentialsRenewal } from '../tls/renew-credentials.ts';
import { loadServiceAccounts } from '../tls/service-account-keys.ts';

/** A running server. */
export interface RunningServer {
  readonly url: string;
  /** The API for parts of this process. */
  readonly api: ApiClient;
  readonly metrics: Metrics;
  /** Empty when none was written. */
  readonly kubeconfig: string;
  /** File with the authority of the server's certificate, for agents. */
  readonly authorityFile: string;
  /** Ports at 127.0.0.1 of agents in this process, by node name. The code that starts an agent adds its port. */
  readonly localAgents: Map<string, number>;
  /** Resolves with the reason when a store has failed permanently, so that the server cannot continue. */
  readonly failed: Promise<Error>;
  stop(): Promise<void>;
}

/**
 * Starts everything that `keelson serve` requires, in order. When a step fails, the results of the previous steps are
 * closed.
 *
 * @param withAgent true when an agent will run in this process. Credentials are then created for an insecure server
 *   too, because the agent accepts requests of the server and of administrators only.
 * @param given credentials of the caller, instead of those of the data directory: no authority signs certificates, they
 *   are not renewed, and no kubeconfig is written
 */
export async function startServer(
  options: ServerOptions,
  withAgent: boolean,
  signal?: AbortSignal,
  given?: Credentials,
): Promise<RunningServer> {
  const { data, insecure, agentCertificateAuthority } = options;
  const logger = createPinoLogger(options.logLevel);
  const controllers = await loadControllers(options.controllers ?? ['api']);
  // Checked before anything is created.
  chooseControllers(controllers, '--controllers');
  const kinds = await loadKinds(options.kinds);
  const oidcAuthority = options.oidcCaFile && (await readCertificates('--oidc-ca-file', options.oidcCaFile));
  const authority =
    agentCertificateAuthority && (await readCertificates('--agent-certificate-authority', agentCertificateAuthority));
  const verified = options.verifyAgentCertificates && (authority !== undefined || !insecure);
  const advertiseAddress = options.advertiseAddress ?? (await defaultAdvertisedAddress(options.listen.host));
  const { tlsCertFile: certificateFile, tlsPrivateKeyFile: keyFile } = options;
  const load = async (): Promise<Credentials> => ({
    ...(await loadCredentials(data, options.listen.host, systemClock.now(), logger, [
      advertiseAddress,
      ...options.tlsExtraNames,
    ])),
    ...(certificateFile && keyFile ? { named: await readServingCertificate(certificateFile, keyFile) } : {}),
  });
  const made = given ?? (insecure && !withAgent ? undefined : await load());
  const credentials = insecure ? undefined : made;
  const { metrics, ...tracing } = await telemetryOf(options);
  let renewal: CredentialsRenewal | undefined;
  const localAgents = new Map<string, number>();
  const audit = auditOptions(options);
  const { authenticationKubeconfig: kubeconfig } = options;
  const delegated =
    kubeconfig === undefined
      ? undefined
      : await delegatedAuthentication({
          ...{ kubeconfig, directory: join(data, 'extended-cluster'), clock: systemClock, logger },
        });
  const plane = await createControlPlane({
    kinds,
    storage: options.storage,
    reads: options.reads,
    ...(options.history ? { history: options.history } : {}),
    ...(options.watchWindow ? { watchWindow: options.watchWindow } : {}),
    ...(options.memoryBudgets ? { memoryBudgets: options.memoryBudgets } : {}),
    data,
    acceptNewStore: options.acceptNewStore,
    controllers,
    disabledAdmissionPlugins: options.disableAdmissionPlugins,
    services: options,
    authorization: authorizationOptions(options),
    // Files that options name take precedence.
    authentication: { ...delegated?.options, ...authenticationOptions(options, oidcAuthority) },
    ...(audit ? { audit } : {}),
    ...(options.encryptionProviderConfig ? { encryptionConfigFile: options.encryptionProviderConfig } : {}),
    logger,
    metrics,
    ...tracing,
    ...(credentials
      ? {
          ...(given
            ? {}
            : {
                certificateSigner: (async (order) =>
                  (await credentialsSigner(renewal?.current ?? credentials))(order)) satisfies CertificateSigner,
              }),
          serviceAccounts: {
            ...(await loadServiceAccounts(options, logger)),
            certificateAuthority: () => (renewal?.current ?? credentials).authority,
          },
        }
      : {}),
    continueTokens: { lifetimeMs: options.continueTokenLifetimeMs },
    ...(signal ? { signal } : {}),
  }).catch((error: unknown) => {
    delegated?.stop();
    // Messages name the option of the program; here it is that of the command line.
    throw error instanceof UsageError && error.message.startsWith('storage')
      ? new UsageError(`--${error.message}`)
      : error;
  });
  try {
    const listening = await plane.listen({
      address: options.listen,
      brand: options.brand,
      ...(options.connectionLimits ? { limits: options.connectionLimits } : {}),
      ...(options.flowControl ? { flowControl: options.flowControl } : {}),
      ...(credentials ? { credentials, advertiseAddress } : { allowedHosts: options.allowedHosts }),
      agents: {
        ...(made && insecure ? { identity: made.agentClient } : {}),
        ...(verified ? { authority: () => authority ?? renewal?.current.authority ?? credentials?.authority } : {}),
        local: localAgents,
      },
    });
    const write = (current: Credentials | undefined) =>
      writeKubeconfig(data, { url: clientUrl(listening.url), credentials: current }, logger).catch((err: unknown) => {
        // A server on a full disk still reads and deletes. The config of an earlier start is valid unless the address
        // has changed.
        if ((err as NodeJS.ErrnoException).code !== 'ENOSPC') throw err;
        logger.warn('client config not written: the disk is full', { err });
        return join(data, kubeconfigFile);
      });
    const kubeconfig = given ? '' : await write(credentials);
    renewal =
      credentials === undefined || given !== undefined
        ? undefined
        : new CredentialsRenewal({
            ...{ current: credentials, load, clock: systemClock, logger, metrics },
            onChange: async (next) => {
              listening.setCredentials(next);
              await write(next);
            },
          });
    return {
      url: listening.url,
      api: plane.api,
      metrics,
      kubeconfig,
      authorityFile: join(data, authorityFile),
      localAgents,
      failed: plane.failed,
      stop: () => {
        renewal?.stop();
        delegated?.stop();
        return plane.close();
      },
    };
  } catch (error) {
    delegated?.stop();
    await plane.close();
    throw error;
  }
}

/** The metrics of the path `/metrics`, and with the option those of OpenTelemetry, which is loaded on demand. */
async function telemetryOf({
  openTelemetry: wanted,
}: ServerOptions): Promise<Partial<OpenTelemetry> & Pick<OpenTelemetry, 'metrics'>> {
  const metrics = createPromMetrics();
  if (!wanted) return { metrics };
  try {
    const { openTelemetry } = await import('../opentelemetry.ts');
    return openTelemetry({ metrics });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new UsageError('--opentelemetry requires the package @opentelemetry/api; install it with the SDK');
  }
}

/** Clients cannot connect to a wildcard address. */
function clientUrl(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}
