import type { ContainerEngine } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core';
import { createAgent } from '../agent.ts';
import { type AgentPeriods, defaultPeriods } from '../agent-periods.ts';
import { createAgentClients } from '../api/client-source.ts';
import type { AgentConfig } from '../contracts/agent-config.ts';
import { noEvents } from '../contracts/event-recorder.ts';
import { ApiEventRecorder } from '../events/api-event-recorder.ts';
import type { HostActions } from '../network/host-actions.ts';
import { requirePodNetwork } from '../network/require-pod-network.ts';
import { UtilityChains } from '../network/utility-chains.ts';
import { askCloud, type CloudProviders } from '../node/cloud-provider.ts';
import { readMachine } from '../node/machine.ts';
import { withNamedAddress } from '../node/named-address.ts';
import { type AgentServers, openServers } from '../server/agent-servers.ts';
import { createTextMetrics } from '../server/text-metrics.ts';
import { createSources } from '../sources/create-sources.ts';
import type { Mounter } from '../volumes/mounter.ts';
import { runOnce } from './run-once.ts';
import { agentVersion } from './version.ts';

export interface RunAgentOptions {
  readonly config: AgentConfig;
  /** What `/configz` shows. */
  readonly effective: Readonly<Record<string, unknown>>;
  readonly engine: ContainerEngine;
  /** Below it are the logs of containers. */
  readonly logRoot: string;
  readonly periods?: Partial<AgentPeriods>;
  /** Absent: the agent changes nothing of the machine's own, such as its packet filter. */
  readonly hostActions?: HostActions;
  /** Default: the programs of the system. */
  readonly mounter?: Mounter;
  /** Besides those that come with the agent. */
  readonly cloudProviders?: CloudProviders;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** An agent that is at work. */
export interface RunningAgent {
  readonly servers: Pick<AgentServers, 'port' | 'readOnlyPort' | 'healthzPort'>;
  /** Resolves with the number of pods when those of --runonce run; rejects when they do not. Undefined without --runonce. */
  readonly once: Promise<number> | undefined;
  /** Ends everything but the containers. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Puts the parts together and starts them: servers, so that a taken port is noticed before anything runs; the life cycle; then the sources.
 *
 * @throws UsageError, or the system's error for a port that is taken; nothing is left running then
 */
export async function runAgent(options: RunAgentOptions): Promise<RunningAgent> {
  const { effective, engine, logRoot, mounter, periods = {}, hostActions, cloudProviders = {}, clock, logger } = options;
  requirePodNetwork(options.config.network, engine.runtime);
  const { nodeName, node } = options.config;
  const instance = await askCloud({ cloud: node.cloud, nodeName, providers: cloudProviders, logger });
  const config = instance === undefined ? options.config : { ...options.config, node: { ...node, instance } };
  const metrics = createTextMetrics();
  const clients =
    config.api === undefined
      ? undefined
      : createAgentClients({
          config: config.api,
          heartbeatMs: config.node.statusUpdateMs,
          clock,
          logger: logger.child({ component: 'api' }),
        });
  const recorder =
    clients === undefined
      ? undefined
      : new ApiEventRecorder({ client: clients.events, nodeName: config.nodeName, ...config.events, clock, logger });
  const events = recorder ?? noEvents;
  const sources = createSources({ config, client: clients?.main, events, clock, logger });
  const lifeCycle = createAgent(config, {
    ...(clients === undefined ? {} : { api: clients.main, heartbeatApi: clients.heartbeat }),
    runtime: engine.runtime,
    images: engine.images,
    pods: sources.config,
    machine: await withNamedAddress(await readMachine(), nodeName, clock),
    events,
    clock,
    logger,
    metrics,
    logRoot,
    ...(mounter === undefined ? {} : { mounter }),
    periods,
    version: `v${agentVersion}`,
  });
  const chains =
    hostActions === undefined || !config.network.makeIptablesUtilChains || config.sources.runOnce
      ? undefined
      : new UtilityChains({
          host: hostActions,
          config: config.network,
          nodeName,
          periodMs: periods.utilityChains ?? defaultPeriods.utilityChains,
          events,
          clock,
          logger,
        });
  let servers: AgentServers | undefined;
  const aborted = new AbortController();
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= (async () => {
      aborted.abort();
      await servers?.close();
      await chains?.stop();
      await sources.stop();
      await lifeCycle.stop();
      await recorder?.stop();
      clients?.close();
    })();
    return stopping;
  };
  try {
    servers = await openServers({ config, state: lifeCycle.state, submit: sources.submit, metrics, effective, clock, logger });
    chains?.start();
    await lifeCycle.start();
    await sources.start();
  } catch (error) {
    await stop();
    throw error;
  }
  const once = config.sources.runOnce
    ? runOnce({ pods: sources.config, state: lifeCycle.state, clock, signal: aborted.signal })
    : undefined;
  return { servers, once, stop };
}
