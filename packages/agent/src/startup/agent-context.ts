import { type ContainerRuntime, type ImageService, withDeadlines } from '@keelson/container-runtime';
import type { ApiClient } from '@keelson/core';
import { type Clock, type Logger, type Metrics, noMetrics } from '@keelson/core/runtime';
import { AgentPaths } from '../base/agent-paths.ts';
import type { AgentConfig } from '../base/config/agent-config.ts';
import { type AgentPeriods, defaultPeriods } from '../base/config/agent-periods.ts';
import type { PodConfigReader } from '../base/contracts/pod-source.ts';
import {
  type EventRecorder,
  type EventSubject,
  noEvents,
  type PodEvents,
  podEvents,
} from '../base/events/event-recorder.ts';
import { podCapacity } from '../pods/pod-admission.ts';
import type { AgentDependencies } from './agent-dependencies.ts';

/** Passes notifications of a change from the parts that observe it to the parts that act on it. */
export class ChangeNotifier<Arguments extends readonly unknown[] = []> {
  readonly #listeners: ((...change: Arguments) => void)[] = [];

  /** Adds a listener. Notifications before this call are not repeated. */
  subscribe(listener: (...change: Arguments) => void): void {
    this.#listeners.push(listener);
  }

  /** Calls all listeners synchronously, in the order in which they were added. */
  notify(...change: Arguments): void {
    for (const listener of this.#listeners) listener(...change);
  }
}

/** Changes that one part of the agent observes and another part acts on. */
export interface AgentChanges {
  /** Notifies that a pod, identified by its UID, must be reconciled. */
  readonly pod: ChangeNotifier<[uid: string]>;
  /** Notifies that the runtime became ready or stopped being ready. */
  readonly runtime: ChangeNotifier;
  /** Notifies that the status of the node must be reported. */
  readonly node: ChangeNotifier;
}

/** The context that all parts of the agent are constructed with: the configuration, the dependencies, and defaults. */
export interface AgentContext {
  readonly config: AgentConfig;
  readonly dependencies: AgentDependencies;
  readonly api: ApiClient | undefined;
  /** The runtime and the image service; every call has the deadline of the configuration. */
  readonly runtime: ContainerRuntime;
  readonly images: ImageService;
  /** The desired pods of all sources. */
  readonly pods: PodConfigReader;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly recorder: EventRecorder;
  readonly events: PodEvents;
  readonly paths: AgentPaths;
  readonly periods: AgentPeriods;
  readonly random: () => number;
  readonly callTimeoutMs: number;
  readonly maxPods: number;
  /** The node, as the subject of events. */
  readonly node: EventSubject;
  readonly changes: AgentChanges;
  /** Aborted when the agent stops. */
  readonly stopped: AbortController;
}

export function createContext(config: AgentConfig, dependencies: AgentDependencies): AgentContext {
  const { api, pods, machine, clock, logger, events: recorder = noEvents, metrics = noMetrics } = dependencies;
  const callTimeoutMs = config.runtimeRequestTimeoutMs;
  return {
    ...{ config, dependencies, api, pods, clock, logger, recorder, metrics, callTimeoutMs },
    ...withDeadlines(dependencies, { clock, defaultTimeoutMs: callTimeoutMs }),
    events: podEvents(recorder),
    paths: new AgentPaths(config.rootDir, dependencies.logRoot ?? '/var/log'),
    periods: { ...defaultPeriods, ...dependencies.periods },
    random: dependencies.random ?? Math.random,
    maxPods: podCapacity(config.limits, machine.cores),
    node: { apiVersion: 'v1', kind: 'Node', name: config.nodeName, uid: config.nodeName },
    changes: { pod: new ChangeNotifier(), runtime: new ChangeNotifier(), node: new ChangeNotifier() },
    stopped: new AbortController(),
  };
}
