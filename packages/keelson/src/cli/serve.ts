import { join } from 'node:path';
import type { ApiClient } from '@keelson/core';
import { UsageError } from '@keelson/core/internal';
import { type Metrics, systemClock } from '@keelson/core/runtime';
import { createPinoLogger } from '@keelson/pino-logger';
import { loadControllers } from '../config/load-modules.ts';
import type { ServerOptions } from '../config/options.ts';
import { processControllers } from '../control-plane/component-statuses.ts';
import { chooseControllers } from '../control-plane/controller-choice.ts';
import { createPlane } from '../control-plane/create-control-plane.ts';
import { createPromMetrics } from '../observe/prom-metrics.ts';
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
import { listenOptions, planeOptions, type ServerContext, telemetryOf } from '../workers/server-context.ts';

/** A running server. */
export interface RunningServer {
  readonly url: string;
  /** Client of the API for other parts of this process. */
  readonly api: ApiClient;
  readonly metrics: Metrics;
  /** Path of the administrator's kubeconfig; empty when none was written. */
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
  const { data, insecure } = options;
  const logger = createPinoLogger(options.logLevel);
  const controllers = await loadControllers(options.controllers ?? ['api']);
  // Invalid names of controllers are rejected before any file is created.
  const choice = chooseControllers(controllers, '--controllers');
  const advertiseAddress = options.advertiseAddress ?? (await defaultAdvertisedAddress(options.listen.host));
  const { tlsCertFile: certificateFile, tlsPrivateKeyFile: keyFile } = options;
  const load = async (): Promise<Credentials> => ({
    ...(await loadCredentials(data, options.listen.host, systemClock.now(), logger, [
      advertiseAddress,
      `kubernetes.default.svc.${options.clusterDomain}`,
      ...options.tlsExtraNames,
    ])),
    ...(certificateFile && keyFile ? { named: await readServingCertificate(certificateFile, keyFile) } : {}),
  });
  const made = given ?? (insecure && !withAgent ? undefined : await load());
  const credentials = insecure ? undefined : made;
  const ownMetrics = createPromMetrics();
  const { metrics, ...tracing } = await telemetryOf(options, ownMetrics);
  let renewal: CredentialsRenewal | undefined;
  const localAgents = new Map<string, number>();
  const { authenticationKubeconfig: kubeconfig } = options;
  const delegated =
    kubeconfig === undefined
      ? undefined
      : await delegatedAuthentication({
          ...{ kubeconfig, directory: join(data, 'extended-cluster'), clock: systemClock, logger },
        });
  const context: ServerContext = {
    ...{ options, logger, metrics, credentials, localAgents, advertiseAddress },
    controllers: processControllers(choice),
    current: () => renewal?.current ?? credentials,
    agentClient: made && insecure ? made.agentClient : undefined,
    delegated: delegated?.options,
  };
  const listen = await listenOptions(context);
  // Loaded on demand: a server without workers does not need it.
  const threads =
    options.workers === 0
      ? undefined
      : new (await import('../workers/worker-threads.ts')).WorkerThreads(context, ownMetrics);
  const { audit, ...ownOptions } = await planeOptions(context);
  let startControllers = () => {};
  const listens = new Promise<void>((resolve) => {
    startControllers = resolve;
  });
  const plane = await createPlane(
    {
      ...ownOptions,
      ...tracing,
      // With workers, the workers serve the requests and record them for the audit.
      ...(audit && threads === undefined ? { audit } : {}),
      data,
      acceptNewStore: options.acceptNewStore,
      controllers,
      ...(credentials && given === undefined
        ? { certificateSigner: async (order) => (await credentialsSigner(context.current() ?? credentials))(order) }
        : {}),
      ...(signal ? { signal } : {}),
    },
    { ...threads?.parts, listening: listens },
  ).catch((error: unknown) => {
    delegated?.stop();
    // Messages of the control plane begin with the name of its option, `storage`; the flag is `--storage`.
    throw error instanceof UsageError && error.message.startsWith('storage')
      ? new UsageError(`--${error.message}`)
      : error;
  });
  try {
    const listening = await (threads?.listen() ?? plane.listen(listen));
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
    // In the next turn of the event loop, after the caller has reported that the server listens.
    setImmediate(startControllers);
    return {
      url: listening.url,
      api: plane.api,
      metrics,
      kubeconfig,
      authorityFile: join(data, authorityFile),
      localAgents,
      failed: threads === undefined ? plane.failed : Promise.race([plane.failed, threads.failed]),
      stop: async () => {
        renewal?.stop();
        delegated?.stop();
        await threads?.close();
        await plane.close();
      },
    };
  } catch (error) {
    delegated?.stop();
    await threads?.close();
    await plane.close();
    throw error;
  }
}

/** Clients cannot connect to a wildcard address. */
function clientUrl(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}
