import { ApiEventRecorder } from '@keelson/client';
import type { ContainerEngine } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core/runtime';
import { agentName } from '../base/agent-name.ts';
import type { AgentConfig } from '../base/config/agent-config.ts';
import { type AgentPeriods, defaultPeriods } from '../base/config/agent-periods.ts';
import { noEvents } from '../base/events/event-recorder.ts';
import { agentVersion } from '../base/version.ts';
import type { CgroupAccess } from '../machine/cgroups/node-cgroups.ts';
import { readMachine } from '../machine/host/machine.ts';
import type { HostActions } from '../machine/network/host-actions.ts';
import { requirePodNetwork } from '../machine/network/pod-network.ts';
import { UtilityChains } from '../machine/network/utility-chains.ts';
import type { Mounter } from '../machine/volumes/mounter.ts';
import { askCloud, type CloudProviders } from '../node/cloud-provider.ts';
import { withNamedAddress } from '../node/named-address.ts';
import { type AgentServers, openServers } from '../serve/agent-servers.ts';
import { createTextMetrics } from '../serve/stats/text-metrics.ts';
import { createSources } from '../sources/create-sources.ts';
import { createAgent } from './agent.ts';
import { openAccess } from './api/api-access.ts';
import type { AgentClients } from './api/client-source.ts';
import type { CertificateRotation } from './credentials/certificate-rotation.ts';
import { rotateServing } from './credentials/serving-rotation.ts';
import type { DynamicConfig } from './dynamic/boot-config.ts';
import { ConfigWatch } from './dynamic/config-watch.ts';
import { runOnce } from './run-once.ts';

export interface RunAgentOptions {
  readonly config: AgentConfig;
  /** The options that `/configz` shows. */
  readonly effective: Readonly<Record<string, unknown>>;
  readonly engine: ContainerEngine;
  /** The parent directory of the logs of containers. */
  readonly logRoot: string;
  readonly periods?: Partial<AgentPeriods>;
  /** When absent, the agent does not change settings of the host, such as its packet filter. */
  readonly hostActions?: HostActions;
  /** When absent, the agent does not change cgroups, independent of the options. */
  readonly cgroups?: CgroupAccess;
  /** Default: the mount programs of the system. */
  readonly mounter?: Mounter;
  /** Cloud providers in addition to the built-in ones. */
  readonly cloudProviders?: CloudProviders;
  /** Present with --dynamic-config-dir; requires an API server. */
  readonly dynamicConfig?: DynamicConfig;
  /** Returns a number in [0, 1), which determines when the client certificate is renewed. */
  readonly random?: () => number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** An agent that has been started. */
export interface RunningAgent {
  readonly servers: Pick<AgentServers, 'port' | 'readOnlyPort' | 'healthzPort' | 'statsPort'>;
  /** The agent's clients, with its current credentials, until it is stopped. Undefined without an API server. */
  readonly clients: Pick<AgentClients, 'main' | 'events'> | undefined;
  /**
   * Resolves with the number of pods when the pods of --runonce run; rejects when they do not. Undefined without
   * --runonce.
   */
  readonly once: Promise<number> | undefined;
  /** Resolves when the node refers to another configuration, which the next start uses. */
  readonly restart: Promise<void>;
  /**
   * Never resolves; rejects when the agent cannot continue, because its client certificate has expired and cannot be
   * renewed.
   */
  readonly failed: Promise<never>;
  /** Stops the agent; containers continue to run. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Creates the parts of the agent and starts them. The servers start first, so that a port in use is reported before any
 * pod is started. The life cycle of pods and the sources follow.
 *
 * @throws UsageError for options that cannot be used, or the system's error for a port in use; all parts are stopped
 *   before
 */
export async function runAgent(options: RunAgentOptions): Promise<RunningAgent> {
  const {
    effective,
    engine,
    logRoot,
    mounter,
    periods = {},
    hostActions,
    cgroups,
    cloudProviders = {},
    dynamicConfig,
    clock,
    logger,
  } = options;
  requirePodNetwork(options.config.network, engine.runtime);
  const { nodeName, node } = options.config;
  const instance = await askCloud({ cloud: node.cloud, nodeName, providers: cloudProviders, logger });
  const config = instance === undefined ? options.config : { ...options.config, node: { ...node, instance } };
  const metrics = createTextMetrics();
  const access = openAccess(config, options);
  const clients = access?.clients;
  const recorder =
    clients === undefined
      ? undefined
      : new ApiEventRecorder({
          client: clients.events,
          source: { component: agentName, host: config.nodeName },
          ...config.events,
          clock,
          logger,
        });
  const events = recorder ?? noEvents;
  const sources = createSources({ config, client: clients?.main, events, clock, logger });
  let servers: AgentServers | undefined;
  const configWatch =
    clients === undefined || dynamicConfig === undefined
      ? undefined
      : new ConfigWatch({ dynamic: dynamicConfig, api: clients.main, nodeName, clock, logger });
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
    ...(cgroups === undefined ? {} : { cgroups }),
    ...(configWatch === undefined ? {} : { nodeConditions: () => [configWatch.condition()] }),
    periods,
    version: `v${agentVersion}`,
    port: () => servers?.port,
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
  const aborted = new AbortController();
  let stopping: Promise<void> | undefined;
  let serving: CertificateRotation | undefined;
  const stop = () => {
    stopping ??= (async () => {
      aborted.abort();
      await serving?.stop();
      await servers?.close();
      await configWatch?.stop();
      await chains?.stop();
      await sources.stop();
      await lifeCycle.stop();
      await recorder?.stop();
      await access?.close();
    })();
    return stopping;
  };
  try {
    servers = await openServers({
      config,
      state: lifeCycle.state,
      streams: lifeCycle.streams,
      logRoot,
      submit: sources.submit,
      reviewApi: clients?.reviews,
      metrics,
      effective,
      clock,
      logger,
    });
    chains?.start();
    await lifeCycle.start();
    await sources.start();
    access?.start();
    const { api, server } = config;
    // An agent that joined has the credentials for a serving certificate; others keep theirs.
    if (clients && api?.bootstrap !== undefined && server.tlsCertFile === undefined && servers.servingPair) {
      serving = rotateServing({
        ...{ client: clients.main, nodeName, certDir: server.certDir, clock },
        first: servers.servingPair,
        serve: (pair) => servers?.setServingPair(pair),
        logger: logger.child({ component: 'certificates' }),
        random: Math.random,
      });
      serving.start();
    }
    configWatch?.start();
  } catch (error) {
    await stop();
    throw error;
  }
  const once = config.sources.runOnce
    ? runOnce({ pods: sources.config, state: lifeCycle.state, clock, signal: aborted.signal })
    : undefined;
  return {
    servers,
    clients,
    once,
    restart: configWatch?.restart ?? new Promise(() => {}),
    failed: access?.failed ?? new Promise<never>(() => {}),
    stop,
  };
}
