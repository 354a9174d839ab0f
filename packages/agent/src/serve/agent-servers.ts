import { readFile } from 'node:fs/promises';
import type { KeyPair } from '@keelson/certificates';
import type { ApiClient } from '@keelson/core';
import { UsageError } from '@keelson/core/internal';
import type { Clock, Logger, Metrics } from '@keelson/core/runtime';
import type { AgentConfig } from '../base/config/agent-config.ts';
import type { PodQueries } from '../base/contracts/pod-queries.ts';
import type { PodStreams } from '../base/contracts/pod-streams.ts';
import { UsageHistory } from '../machine/stats/usage-history.ts';
import type { SubmitSource } from '../sources/submit-source.ts';
import { openGate } from './access/gate.ts';
import { mainGate } from './access/main-gate.ts';
import { LoopDelay } from './debug/loop-delay.ts';
import { profileRoute } from './debug/profile-routes.ts';
import { healthRoutes } from './health-routes.ts';
import { type Listening, listen } from './http/listen.ts';
import type { Route } from './http/route.ts';
import type { Gate } from './http/router.ts';
import { type AgentListener, createRouter } from './http/router.ts';
import { logRoute } from './log-route.ts';
import { manifestRoutes } from './manifest-routes.ts';
import { configRoute, metricsRoute, podRoutes, specRoute } from './other-routes.ts';
import { portForwardRoute, processRoutes, runRoute } from './process-routes.ts';
import { servingPair } from './serving-certificate.ts';
import { statsPages } from './stats/stats-pages.ts';
import { StatsPort } from './stats/stats-port.ts';
import { statsRoute } from './stats-route.ts';
import { systemLogRoute } from './system-log-route.ts';

export interface AgentServersOptions {
  readonly config: Pick<AgentConfig, 'nodeName' | 'server' | 'syncMs'>;
  readonly state: PodQueries;
  readonly streams: PodStreams;
  /** The log directory of the host, whose files are served. */
  readonly logRoot: string;
  /** Undefined: manifests cannot be submitted. */
  readonly submit: SubmitSource | undefined;
  /** API client for reviews; undefined for an agent without an API server. */
  readonly reviewApi?: Pick<ApiClient, 'resource'> | undefined;
  readonly metrics: Metrics;
  /** The content of `/configz`. */
  readonly effective: Readonly<Record<string, unknown>>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The open ports; undefined for closed ones. */
export interface AgentServers {
  readonly port: number | undefined;
  readonly readOnlyPort: number | undefined;
  readonly healthzPort: number | undefined;
  /** Also undefined while another process uses it. */
  readonly statsPort: number | undefined;
  /** The pair that the main port serves first; undefined without this port. */
  readonly servingPair: KeyPair | undefined;
  /** Serves a pair at the main port to new connections. */
  setServingPair(pair: KeyPair): void;
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

/** How often usage is sampled. */
const usagePeriodMs = 10_000;

/**
 * Opens the main port with TLS, the read-only port, the health port and the statistics port, as far as they are
 * enabled. Opens all or none, except for the statistics port, which may be opened later.
 */
export async function openServers(options: AgentServersOptions): Promise<AgentServers> {
  const { config, state, streams, logRoot, submit, reviewApi, metrics, effective, clock, logger } = options;
  const { server, nodeName, syncMs } = config;
  const health = healthRoutes({ state, syncMs, clock });
  const history = new UsageHistory({ state, clock, logger, periodMs: usagePeriodMs });
  const stats = statsRoute({ state, history, nodeName, clock });
  const common: Route[] = [...health, ...podRoutes(state), stats, metricsRoute(metrics, history), specRoute];
  const loopDelay =
    server.contentionProfiling && server.enabled && server.debuggingHandlers ? new LoopDelay() : undefined;
  const limits = { clock, idleMs: server.streamingIdleMs };
  const debug = [
    logRoute(state, clock),
    ...processRoutes(streams, limits),
    portForwardRoute(streams, limits),
    runRoute(streams),
    systemLogRoute(logRoot),
    profileRoute({ loopDelay, clock }),
  ];
  const open: Listening[] = [];
  let firstPair: KeyPair | undefined;
  const close = async () => {
    loopDelay?.stop();
    await Promise.all([history.stop(), statsPort?.close(), ...open.map((one) => one.close())]);
  };
  const opened = async (
    address: string,
    port: number,
    listener: AgentListener,
    tls?: Parameters<typeof listen>[0]['tls'],
  ) => {
    const one = await listen({ address, port, listener, ...(tls === undefined ? {} : { tls }) });
    open.push(one);
    return one.port;
  };
  const anybody = openGate(nodeName);
  const router = (routes: readonly Route[], gate: Gate, debuggingHandlers: boolean) =>
    createRouter({ routes, gate, debuggingHandlers, logger });

  const statsPort =
    server.statsPort === 0
      ? undefined
      : new StatsPort({ port: server.statsPort, listener: router(statsPages(history), anybody, false), clock, logger });

  async function main(): Promise<number> {
    const clientCa = await clientAuthorities(server.clientCaFile);
    firstPair = await servingPair(server, [nodeName, 'localhost', '127.0.0.1', '::1'], clock.now());
    const gate = mainGate({ config: server, nodeName, api: reviewApi, clock, logger });
    const routes = [
      ...common,
      ...debug,
      configRoute(effective),
      ...(submit === undefined ? [] : manifestRoutes(submit)),
    ];
    return opened(server.address, server.port, router(routes, gate, server.debuggingHandlers), {
      ...firstPair,
      clientCa,
    });
  }

  // Debug paths are routed so that they answer with the reason why they are disabled.
  const readOnly = () =>
    router([...common.filter((route) => route.readOnlyPort || route.debug), ...debug], anybody, false);
  try {
    const port = server.enabled ? await main() : undefined;
    const readOnlyPort =
      server.readOnlyPort === 0 ? undefined : await opened(server.address, server.readOnlyPort, readOnly());
    const healthzPort =
      server.healthzPort === 0
        ? undefined
        : await opened(server.healthzAddress, server.healthzPort, router(health, anybody, false));
    await statsPort?.open();
    loopDelay?.start();
    if ((port ?? readOnlyPort ?? statsPort) !== undefined) history.start();
    return {
      ...{ port, readOnlyPort, healthzPort },
      get statsPort() {
        return statsPort?.port;
      },
      servingPair: firstPair,
      // The main port is opened first.
      setServingPair: (pair) => open[0]?.setCertificate(pair),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
