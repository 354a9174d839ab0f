import { quantityValue } from '@keelson/core';
import { createEviction, type Eviction } from '../node/eviction/create-eviction.ts';
import { Garbage } from '../node/garbage/garbage.ts';
import { NodePresence } from '../node/node-presence.ts';
import type { AgentContext } from './agent-context.ts';
import type { MachineParts } from './machine-parts.ts';
import type { PodNode, PodParts } from './pod-parts.ts';
import type { RuntimeParts } from './runtime-parts.ts';

/** The parts that manage the node as a whole. */
export interface NodeParts {
  readonly garbage: Garbage;
  readonly eviction: Eviction;
  /** Undefined without an API server. */
  readonly presence: NodePresence | undefined;
}

export function createNodeParts(
  context: AgentContext,
  runtimeParts: RuntimeParts,
  machine: MachineParts,
  { workers, messages, queries }: PodParts,
  { ips, resources, pressure }: PodNode,
): NodeParts {
  const { config, dependencies, runtime, images, clock, logger, metrics, recorder, paths, periods, node } = context;
  const { callTimeoutMs } = context;
  const { states, health, version } = runtimeParts;
  const garbage = new Garbage({
    ...{ runtime, images, workers, states, messages, paths, clock, logger, node, callTimeoutMs },
    config: config.images,
    events: recorder,
    imagePeriodMs: periods.imageGarbage,
    containerPeriodMs: periods.containerGarbage,
  });
  const eviction = createEviction({
    ...{ config, periods, pressure, workers, garbage, paths, node },
    dependencies: { images, machine: dependencies.machine, clock, logger, metrics, events: recorder },
    usage: machine.usage,
    state: queries,
    files: machine.volumes.host.files,
    podEvents: context.events,
    allocatableMemory: () => Number(quantityValue(resources.allocatable['memory'] ?? '0')),
    onChange: () => context.changes.node.notify(),
  });
  const { api, heartbeatApi = api } = dependencies;
  if (heartbeatApi === undefined) return { garbage, eviction, presence: undefined };
  const presence = new NodePresence({
    ...{ config, runtime, images, clock, logger, callTimeoutMs, ips, resources, version },
    machine: dependencies.machine,
    api: heartbeatApi,
    events: recorder,
    agentVersion: dependencies.version ?? 'v0.1.0',
    port: () => (config.server.enabled ? (dependencies.port?.() ?? config.server.port) : 0),
    problems: () => health.problems(),
    pressure: () => pressure.conditions,
    further: dependencies.nodeConditions ?? (() => []),
    volumesInUse: () => machine.volumes.inUse(),
    onNode: ({ spec }) => machine.podRange.learn(spec?.podCIDR),
  });
  context.changes.node.subscribe(() => presence.requestReport());
  context.changes.runtime.subscribe(() => presence.requestReport());
  return { garbage, eviction, presence };
}
