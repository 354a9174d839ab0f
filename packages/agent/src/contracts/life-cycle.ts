import type { ContainerEngine } from '@keelson/container-runtime';
import type { ApiClient, Clock, Logger, Metrics } from '@keelson/core';
import type { AgentConfig } from './agent-config.ts';
import type { EventRecorder } from './event-recorder.ts';
import type { PodConfigReader } from './pod-source.ts';
import type { PodStateReader } from './pod-state.ts';

/** Clients of the API server, each with limits of its own. */
export interface ApiClients {
  /** For everything but what has a client of its own; limited by --cluster-api-qps. */
  readonly main: ApiClient;
  /** For the node's heartbeats, which nothing may hold up; without limit, and no slower than a period. */
  readonly heartbeat: ApiClient;
}

/** What the composition gives the part of the agent that makes pods run. */
export interface LifeCycleOptions {
  readonly config: AgentConfig;
  readonly pods: PodConfigReader;
  /** Undefined: the agent runs alone. */
  readonly api: ApiClients | undefined;
  readonly events: EventRecorder;
  /** Deadlines are on it already. */
  readonly engine: ContainerEngine;
  /** What the node says its main port is; 0 = closed. Asked when the servers are open. */
  readonly daemonPort: () => number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** The part of the agent that makes pods run. */
export interface LifeCycle {
  readonly state: PodStateReader;
  /** Looks at what the runtime has, then begins to act. Called before the sources deliver. */
  start(): Promise<void>;
  /** Ends acting; containers run on. */
  stop(): Promise<void>;
}

/** Makes the life cycle; nothing happens before `start`. */
export type CreateLifeCycle = (options: LifeCycleOptions) => LifeCycle;
