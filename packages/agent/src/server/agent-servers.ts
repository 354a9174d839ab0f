import { readFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import type { Clock, Logger, Metrics } from '@keelson/core';
import type { AgentConfig } from '../contracts/agent-config.ts';
import type { PodStateReader } from '../contracts/pod-state.ts';
import { UsageError } from '../options/usage-error.ts';
import type { SubmitSource } from '../sources/submit-source.ts';
import { authenticator, everybody } from './authenticate.ts';
import { healthRoutes } from './health-routes.ts';
import { type Listening, listen } from './listen.ts';
import { logRoute } from './log-route.ts';
import { specRoute } from './machine-info.ts';
import { manifestRoutes } from './manifest-routes.ts';
import { configRoute, metricsRoute, missingRoutes } from './other-routes.ts';
import { podRoutes } from './pod-routes.ts';
import type { Route } from './route.ts';
import { createRouter } from './router.ts';
import { servingPair } from './serving-certificate.ts';
import { statsRoute } from './stats-route.ts';

export interface AgentServersOptions {
  readonly config: Pick<AgentConfig, 'nodeName' | 'server' | 'syncMs'>;
  readonly state: PodStateReader;
  /** Absent: nothing can be submitted. */
  readonly submit: SubmitSource | undefined;
  readonly metrics: Metrics;
  /** What `/configz` shows. */
  readonly effective: Readonly<Record<string, unknown>>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The ports that are open; undefined for those that are not. */
export interface AgentServers {
  readonly port: number | undefined;
  readonly readOnlyPort: number | undefined;
  readonly healthzPort: number | undefined;
  close(): Promise<void>;
}

async function clientAuthorities(path: string | undefined): Promise<Buffer | undefined> {
  if (path === undefined) return undefined;
  try {
    return await readFile(path);
  } catch (error) {
    throw new UsageError(`--client-ca-file: cannot read ${path}: ${(error as Error).message}`);
  }
}

/** Opens the main port with TLS, the read-only port, and the health port, as far as each is wanted. Opens all or none. */
export async function openServers(options: AgentServersOptions): Promise<AgentServers> {
  const { config, state, submit, metrics, effective, clock, logger } = options;
  const { server, nodeName, syncMs } = config;
  const health = healthRoutes({ state, syncMs, clock });
  const common: Route[] = [...health, ...podRoutes(state), statsRoute(state, nodeName, clock), metricsRoute(metrics), specRoute];
  const debug = [logRoute(state, clock), ...missingRoutes];
  const open: Listening[] = [];
  const close = async () => {
    await Promise.all(open.map((one) => one.close()));
  };
  const opened = async (address: string, port: number, listener: RequestListener, tls?: Parameters<typeof listen>[0]['tls']) => {
    const one = await listen({ address, port, listener, ...(tls === undefined ? {} : { tls }) });
    open.push(one);
    return one.port;
  };
  const router = (
    routes: readonly Route[],
    authenticate: Parameters<typeof createRouter>[0]['authenticate'],
    debugging: boolean,
  ) => createRouter({ routes, authenticate, debuggingHandlers: debugging, logger });

  async function main(): Promise<number> {
    const clientCa = await clientAuthorities(server.clientCaFile);
    const { certificate, key } = await servingPair(server, [nodeName, 'localhost', '127.0.0.1', '::1'], clock.now());
    const authenticate = authenticator({ anonymousAuth: server.anonymousAuth, clientCertificates: clientCa !== undefined });
    const routes = [...common, ...debug, configRoute(effective), ...(submit === undefined ? [] : manifestRoutes(submit))];
    return opened(server.address, server.port, router(routes, authenticate, server.debuggingHandlers), {
      certificate,
      key,
      clientCa,
    });
  }

  try {
    return {
      port: server.enabled ? await main() : undefined,
      // Debug paths are there to say that they are closed.
      readOnlyPort:
        server.readOnlyPort === 0
          ? undefined
          : await opened(
              server.address,
              server.readOnlyPort,
              router([...common.filter(({ readOnlyPort, debug: closed }) => readOnlyPort || closed), ...debug], everybody, false),
            ),
      healthzPort:
        server.healthzPort === 0
          ? undefined
          : await opened(server.healthzAddress, server.healthzPort, router(health, everybody, false)),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
