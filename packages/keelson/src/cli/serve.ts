import { systemClock } from '@keelson/core';
import { loadKinds } from '../config/load-kinds.ts';
import type { ServerOptions } from '../config/options.ts';
import { createControlPlane } from '../control-plane/create-control-plane.ts';
import { createPinoLogger } from '../observe/pino-logger.ts';
import { createPromMetrics } from '../observe/prom-metrics.ts';
import { loadCredentials } from '../tls/credentials.ts';
import { writeKubeconfig } from '../tls/kubeconfig.ts';

/** A server that runs until it is told to stop. */
export interface RunningServer {
  readonly url: string;
  readonly kubeconfig: string;
  stop(): Promise<void>;
}

/** Opens everything `keelson serve` needs, in order; what was opened is closed again when a later step fails. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const logger = createPinoLogger(options.logLevel);
  const kinds = await loadKinds(options.kinds);
  const credentials = options.insecure ? undefined : await loadCredentials(options.data, options.listen.host, systemClock.now());
  const plane = await createControlPlane({
    kinds,
    storage: options.storage,
    reads: options.reads,
    ...(options.history ? { history: options.history } : {}),
    data: options.data,
    acceptNewStore: options.acceptNewStore,
    controllers: options.controllers,
    logger,
    metrics: createPromMetrics(),
    continueTokens: { lifetimeMs: options.continueTokenLifetimeMs },
  });
  try {
    const listening = await plane.listen({
      address: options.listen,
      brand: options.brand,
      ...(credentials ? { credentials } : {}),
    });
    const kubeconfig = await writeKubeconfig(options.data, { url: clientUrl(listening.url), credentials });
    return { url: listening.url, kubeconfig, stop: () => plane.close() };
  } catch (error) {
    await plane.close();
    throw error;
  }
}

/** Clients cannot connect to a wildcard address. */
function clientUrl(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}
