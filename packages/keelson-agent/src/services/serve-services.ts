import { once } from 'node:events';
import { createServer } from 'node:net';
import { type AgentConfig, UsageError } from '@keelson/agent';
import { ApiEventRecorder } from '@keelson/client';
import { type ApiClient, isStatusError } from '@keelson/core';
import { type Clock, type Logger, noMetrics, ServiceHost } from '@keelson/core/runtime';
import { EndpointSlice } from '@keelson/kinds';

/** Environment variables that determine whether the agent serves services. */
export interface ServiceProxyVariables {
  /** `KEELSON_AGENT_SERVICE_PROXY`: `on` or `off`. Default: on for an agent with a bootstrap file. */
  readonly serviceProxy: string | undefined;
}

const variable = 'KEELSON_AGENT_SERVICE_PROXY';

/**
 * Whether the agent serves the addresses of services. Only an agent that joined has the rights of a node by default.
 *
 * @throws UsageError for another value than `on` and `off`, and for `on` without an API server
 */
export function isServiceProxyOn(
  { api, sources }: Pick<AgentConfig, 'api' | 'sources'>,
  { serviceProxy }: ServiceProxyVariables,
): boolean {
  if (serviceProxy === 'off') return false;
  if (!serviceProxy) return api?.bootstrap !== undefined && !sources.runOnce;
  if (serviceProxy !== 'on') throw new UsageError(`${variable} must be "on" or "off", not "${serviceProxy}"`);
  if (api === undefined) throw new UsageError(`${variable}=on requires the option --clusterconfig`);
  return true;
}

export interface ServeServicesOptions {
  readonly main: ApiClient;
  readonly events: ApiClient;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Serves the services whose addresses are loopback addresses, in the background: the agent neither waits for the API
 * server nor ends when services cannot be served. Other addresses need the packet filter: see `keelson proxy`.
 */
export function serveServices(options: ServeServicesOptions): { stop(): Promise<void> } {
  const { main: client, nodeName, clock } = options;
  const logger = options.logger.child({ component: 'services' });
  const stopped = new AbortController();
  const { signal } = stopped;
  const source = { component: 'service-proxy', host: nodeName };
  const events = new ApiEventRecorder({ client: options.events, clock, logger, qps: 5, burst: 50, source });
  let host: ServiceHost | undefined;
  const start = async () => {
    if (!(await hasLoopbackRange())) throw new Error('this machine has only one loopback address');
    await requireRights(client);
    const { ServiceProxy, ServiceTable } = await import('@keelson/service-proxy');
    const nodes = new Set([nodeName]);
    const table = new ServiceTable({ client, clock, logger });
    const proxy = new ServiceProxy({
      ...{ table, events, clock, logger, metrics: noMetrics },
      localNodes: () => nodes,
      serves: ({ spec }) => spec.clusterIP?.startsWith('127.') === true,
      isShared: true,
    });
    signal.throwIfAborted();
    host = new ServiceHost([table, proxy], clock, logger);
    await host.start(signal);
    logger.info('services are served', { addresses: '127.0.0.0/8' });
  };
  const running = start().catch((error: Error) => {
    if (!signal.aborted) logger.warn('services are not served on this node', { reason: error.message });
  });
  return {
    async stop() {
      stopped.abort(new Error('the agent stops'));
      await running;
      await host?.stop();
      await events.stop();
    },
  };
}

/**
 * Whether the machine has loopback addresses other than 127.0.0.1. Linux has all of 127.0.0.0/8; other systems have
 * only those that were configured.
 */
async function hasLoopbackRange(): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(0, '127.96.0.1');
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}

/**
 * Rejects when the API server does not permit the node to read EndpointSlices, as servers other than Keelson do. Other
 * failures are ignored here: the informers of the services wait for a server that does not answer.
 */
async function requireRights(client: ApiClient): Promise<void> {
  try {
    await client.resource(EndpointSlice).list({ limit: 1 });
  } catch (error) {
    if (isStatusError(error) && (error.code === 403 || error.code === 404)) throw error;
  }
}
