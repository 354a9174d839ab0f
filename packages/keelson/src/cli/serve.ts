import { join } from 'node:path';
import { systemClock } from '@keelson/core';
import { tokenUsers } from '../auth/bearer-tokens.ts';
import { readTokenFile } from '../auth/token-file.ts';
import { loadKinds } from '../config/load-kinds.ts';
import type { ServerOptions } from '../config/options.ts';
import { createControlPlane } from '../control-plane/create-control-plane.ts';
import { readAuthority } from '../nodes/read-authority.ts';
import { createPinoLogger } from '../observe/pino-logger.ts';
import { createPromMetrics } from '../observe/prom-metrics.ts';
import { authorityFile, loadCredentials } from '../tls/credentials.ts';
import { credentialsSigner } from '../tls/credentials-signer.ts';
import { writeKubeconfig } from '../tls/kubeconfig.ts';

/** A server that runs until it is told to stop. */
export interface RunningServer {
  readonly url: string;
  readonly kubeconfig: string;
  /** File with the authority by which an agent knows the server. */
  readonly authorityFile: string;
  /** Ports at 127.0.0.1 of agents in this process, by node; who starts one enters it. */
  readonly localAgents: Map<string, number>;
  stop(): Promise<void>;
}

/**
 * Opens everything `keelson serve` needs, in order; what was opened is closed again when a later step fails. `withAgent`: an agent will run in
 * this process. It lets nobody in but the server, also where the server lets everybody in.
 */
export async function startServer(options: ServerOptions, withAgent: boolean): Promise<RunningServer> {
  const { data, insecure, agentCertificateAuthority } = options;
  const logger = createPinoLogger(options.logLevel);
  const kinds = await loadKinds(options.kinds);
  const { tokenAuthFile } = options;
  const authenticateToken = tokenAuthFile && tokenUsers(await readTokenFile(tokenAuthFile, logger));
  const authority = agentCertificateAuthority === undefined ? undefined : await readAuthority(agentCertificateAuthority);
  const made = insecure && !withAgent ? undefined : await loadCredentials(data, options.listen.host, systemClock.now());
  const credentials = insecure ? undefined : made;
  const localAgents = new Map<string, number>();
  const plane = await createControlPlane({
    kinds,
    storage: options.storage,
    reads: options.reads,
    ...(options.history ? { history: options.history } : {}),
    ...(options.watchWindow ? { watchWindow: options.watchWindow } : {}),
    data,
    acceptNewStore: options.acceptNewStore,
    controllers: options.controllers,
    ...(authenticateToken ? { authenticateToken } : {}),
    logger,
    metrics: createPromMetrics(),
    ...(credentials ? { certificateSigner: await credentialsSigner(credentials) } : {}),
    continueTokens: { lifetimeMs: options.continueTokenLifetimeMs },
  });
  try {
    const listening = await plane.listen({
      address: options.listen,
      brand: options.brand,
      ...(credentials ? { credentials } : {}),
      agents: {
        ...(made ? { identity: made.agentClient } : {}),
        ...(authority === undefined ? {} : { authority }),
        local: localAgents,
      },
    });
    const kubeconfig = await writeKubeconfig(data, { url: clientUrl(listening.url), credentials });
    return {
      url: listening.url,
      kubeconfig,
      authorityFile: join(data, authorityFile),
      localAgents,
      stop: () => plane.close(),
    };
  } catch (error) {
    await plane.close();
    throw error;
  }
}

/** Clients cannot connect to a wildcard address. */
function clientUrl(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}
