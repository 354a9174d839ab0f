import type { AuthenticationOptions } from '@keelson/access';
import type { KeyPair } from '@keelson/certificates';
import { UsageError } from '@keelson/core/internal';
import type { Logger, Metrics } from '@keelson/core/runtime';
import { auditOptions } from '../config/audit-options.ts';
import { authenticationOptions } from '../config/authentication-options.ts';
import { authorizationOptions } from '../config/authorization-options.ts';
import { loadKinds } from '../config/load-modules.ts';
import type { ServerOptions } from '../config/options.ts';
import type { ProcessControllers } from '../control-plane/component-statuses.ts';
import type { ControlPlaneOptions } from '../control-plane/plane-options.ts';
import { readCertificates } from '../nodes/api-node-dialer.ts';
import type { OpenTelemetry } from '../opentelemetry.ts';
import type { ListenOptions } from '../server/listen-options.ts';
import type { Credentials } from '../tls/credentials.ts';
import { loadServiceAccounts } from '../tls/service-account-keys.ts';

/** What the options of a plane and of its listener are derived from, in the main thread and in worker threads. */
export interface ServerContext {
  readonly options: ServerOptions;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** The credentials at the start. Undefined for an insecure server. */
  readonly credentials: Credentials | undefined;
  /** The present credentials, which may have been renewed since the start. */
  current(): Credentials | undefined;
  /** Client certificate of an insecure server for the agents in this process. */
  readonly agentClient: KeyPair | undefined;
  /** Authentication by the cluster that this server extends. */
  readonly delegated: AuthenticationOptions | undefined;
  readonly advertiseAddress: string;
  readonly localAgents: ReadonlyMap<string, number>;
  /** The controllers of the process; the main thread runs them. */
  readonly controllers: ProcessControllers;
}

/** The options of a plane that serves requests; without those of the process that owns the stores. */
export async function planeOptions(context: ServerContext): Promise<ControlPlaneOptions> {
  const { options, logger, metrics, credentials } = context;
  const oidcAuthority = options.oidcCaFile && (await readCertificates('--oidc-ca-file', options.oidcCaFile));
  const audit = auditOptions(options);
  return {
    kinds: await loadKinds(options.kinds),
    storage: options.storage,
    reads: options.reads,
    ...(options.history ? { history: options.history } : {}),
    ...(options.watchWindow ? { watchWindow: options.watchWindow } : {}),
    ...(options.memoryBudgets ? { memoryBudgets: options.memoryBudgets } : {}),
    disabledAdmissionPlugins: options.disableAdmissionPlugins,
    services: options,
    authorization: authorizationOptions(options),
    // Files that options name take precedence.
    authentication: { ...context.delegated, ...authenticationOptions(options, oidcAuthority) },
    ...(audit ? { audit } : {}),
    ...(options.encryptionProviderConfig ? { encryptionConfigFile: options.encryptionProviderConfig } : {}),
    logger,
    metrics,
    ...(credentials
      ? {
          serviceAccounts: {
            ...(await loadServiceAccounts(options, logger)),
            certificateAuthority: () => (context.current() ?? credentials).authority,
          },
        }
      : {}),
    continueTokens: { lifetimeMs: options.continueTokenLifetimeMs },
  };
}

export async function listenOptions(context: ServerContext): Promise<ListenOptions> {
  const { options, credentials, agentClient, advertiseAddress, localAgents } = context;
  const { agentCertificateAuthority: file, insecure } = options;
  const authority = file && (await readCertificates('--agent-certificate-authority', file));
  const verified = options.verifyAgentCertificates && (authority !== undefined || !insecure);
  return {
    address: options.listen,
    brand: options.brand,
    ...(options.connectionLimits ? { limits: options.connectionLimits } : {}),
    ...(options.flowControl ? { flowControl: options.flowControl } : {}),
    ...(credentials ? { credentials, advertiseAddress } : { allowedHosts: options.allowedHosts }),
    agents: {
      ...(agentClient ? { identity: agentClient } : {}),
      ...(verified ? { authority: () => authority ?? context.current()?.authority } : {}),
      local: localAgents,
    },
  };
}

/** The metrics of the path `/metrics`, and with the option those of OpenTelemetry, which is loaded on demand. */
export async function telemetryOf(
  { openTelemetry: wanted }: ServerOptions,
  metrics: Metrics,
): Promise<Partial<OpenTelemetry> & Pick<OpenTelemetry, 'metrics'>> {
  if (!wanted) return { metrics };
  try {
    const { openTelemetry } = await import('../opentelemetry.ts');
    return openTelemetry({ metrics });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new UsageError('--opentelemetry requires the package @opentelemetry/api; install it with the SDK');
  }
}
