import type { ImageService } from '@keelson/container-runtime';
import { type Clock, type Logger, type Metrics, noMetrics } from '@keelson/core/runtime';
import type { AgentPaths } from '../../base/agent-paths.ts';
import type { AgentConfig } from '../../base/config/agent-config.ts';
import type { AgentPeriods } from '../../base/config/agent-periods.ts';
import type { PodQueries } from '../../base/contracts/pod-queries.ts';
import { type EventRecorder, type EventSubject, noEvents, type PodEvents } from '../../base/events/event-recorder.ts';
import type { HostFiles } from '../../machine/host/host-files.ts';
import type { Machine } from '../../machine/host/machine.ts';
import type { NodeUsage } from '../../machine/stats/node-usage.ts';
import type { PodWorkers } from '../../pods/pod-workers.ts';
import type { Garbage } from '../garbage/garbage.ts';
import { diskSpace } from './disk-space.ts';
import { Evictions } from './evictions.ts';
import { Evictor } from './evictor.ts';
import { LimitKeeper } from './limit-keeper.ts';
import { MemoryWatch } from './memory-watch.ts';
import { Observer } from './observer.ts';
import type { PressureState } from './pressure.ts';
import type { VictimsOptions } from './victims.ts';

export interface EvictionDependencies {
  readonly images: ImageService;
  readonly machine: Pick<Machine, 'memoryBytes'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics?: Metrics;
  readonly events?: EventRecorder;
}

export interface CreateEvictionOptions {
  readonly config: AgentConfig;
  readonly dependencies: EvictionDependencies;
  readonly periods: Pick<AgentPeriods, 'eviction' | 'memoryWatch'>;
  readonly usage: NodeUsage;
  /** Shared with the admission of pods and with the conditions of the node. */
  readonly pressure: PressureState;
  readonly state: Pick<PodQueries, 'usage'>;
  readonly workers: PodWorkers;
  readonly garbage: Pick<Garbage, 'reclaimContainers' | 'reclaimImages'>;
  readonly paths: AgentPaths;
  /** Files of volumes. */
  readonly files: Pick<HostFiles, 'treeUsage'>;
  readonly podEvents: PodEvents;
  readonly node: EventSubject;
  readonly allocatableMemory: () => number;
  readonly onChange: () => void;
}

/** Observes the resources of the node and evicts pods when a threshold is met. */
export interface Eviction {
  /** Resolves after the first observation, so that the conditions of the node are up to date. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Constructs the parts of eviction from the options. */
export function createEviction(options: CreateEvictionOptions): Eviction {
  const { config, dependencies, periods, usage, pressure, state, workers, garbage, paths, files, podEvents, node } =
    options;
  const { images, machine, clock, logger, metrics = noMetrics, events = noEvents } = dependencies;
  const { thresholds, maxPodGraceSeconds, watchMemory } = config.eviction;
  const evictions = new Evictions({ maxPodGraceSeconds, clock, logger, metrics, podEvents });
  const victims: VictimsOptions = {
    workers: () => workers.all(),
    usage: (signal) => state.usage(signal),
    disk: diskSpace(paths, files),
    gates: config.gates,
  };
  const evictor = new Evictor({
    config: config.eviction,
    pressure,
    observer: new Observer({
      signals: new Set(thresholds.map(({ signal }) => signal)),
      ...{ usage, images, rootDir: config.rootDir, memoryBytes: machine.memoryBytes, logger },
      pods: (signal) => state.usage(signal),
      allocatableMemory: options.allocatableMemory,
      callTimeoutMs: config.runtimeRequestTimeoutMs,
    }),
    ...{ evictions, victims },
    reclaims: {
      containers: (signal) => garbage.reclaimContainers(signal),
      images: (signal) => garbage.reclaimImages(signal),
    },
    ...{ clock, logger, events, node, periodMs: periods.eviction, onChange: options.onChange },
  });
  const ofMemory = thresholds.filter(({ signal }) => signal === 'memory.available');
  const watch =
    watchMemory && ofMemory.length > 0
      ? new MemoryWatch({
          ...{ thresholds: ofMemory, usage, memoryBytes: machine.memoryBytes, clock, logger },
          periodMs: periods.memoryWatch,
          onMet: () => evictor.now(),
        })
      : undefined;
  const limits =
    config.gates['LocalStorageCapacityIsolation'] === true
      ? new LimitKeeper({ victims, evictions, clock, logger, periodMs: periods.eviction })
      : undefined;
  return {
    async start() {
      await evictor.start();
      watch?.start();
      limits?.start();
    },
    async stop() {
      await Promise.all([watch?.stop(), limits?.stop(), evictor.stop()]);
    },
  };
}
