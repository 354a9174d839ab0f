import type { ContainerRuntime, ImageService } from '@keelson/container-runtime';
import type { ApiClient } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { coreV1 } from '@keelson/kinds';
import type { AgentConfig } from '../base/config/agent-config.ts';
import type { EventRecorder } from '../base/events/event-recorder.ts';
import type { Machine } from '../machine/host/machine.ts';
import type { RuntimeVersionCache } from '../runtime-view/runtime-health.ts';
import { NodeLease } from './node-lease.ts';
import { NodeReporter, type NodeReporterOptions, readImages } from './node-reporter.ts';
import type { NodeResources } from './node-resources.ts';
import { type NodeFinding, type NodeFindings, nodeStatus } from './node-status.ts';

export interface NodePresenceParts extends Pick<NodeFindings, 'ips' | 'agentVersion'> {
  readonly api: ApiClient;
  readonly config: AgentConfig;
  /** Of the agent's server; 0 = closed. */
  readonly port: () => number;
  readonly machine: Machine;
  readonly runtime: Pick<ContainerRuntime, 'version'>;
  readonly images: ImageService;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: EventRecorder;
  readonly callTimeoutMs: number;
  /** Why the node cannot run pods; empty when it can. */
  readonly problems: () => readonly string[];
  readonly pressure: () => NodeFindings['pressure'];
  readonly resources: Pick<NodeResources, 'capacity' | 'allocatable'>;
  readonly further: () => readonly NodeFinding[];
  readonly version: Pick<RuntimeVersionCache, 'get'>;
  readonly volumesInUse: () => Iterable<string>;
  readonly onNode: NonNullable<NodeReporterOptions['onNode']>;
}

const leaseSeconds = 40;

/** The representation of the node in the API: the Node object with its status, and the lease. */
export class NodePresence {
  readonly #parts: NodePresenceParts;
  readonly #reporter: NodeReporter;
  readonly #lease: NodeLease;

  constructor(parts: NodePresenceParts) {
    const { api, config, machine, clock, logger, events, onNode } = parts;
    const { nodeName } = config;
    this.#parts = parts;
    this.#reporter = new NodeReporter({
      api,
      nodeName,
      architecture: machine.architecture,
      config: config.node,
      clock,
      logger,
      events,
      status: (before) => this.#status(before),
      onNode,
    });
    this.#lease = new NodeLease({ api, nodeName, clock, logger, durationSeconds: leaseSeconds });
  }

  start(): void {
    this.#reporter.start();
    this.#lease.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#reporter.stop(), this.#lease.stop()]);
  }

  /** Requests a report of the status now, because it has changed. */
  requestReport(): void {
    this.#reporter.requestReport();
  }

  async #status(before: readonly coreV1.NodeCondition[]): Promise<coreV1.NodeStatus> {
    const { config, machine, ips, resources, agentVersion, images, clock, callTimeoutMs } = this.#parts;
    return {
      ...nodeStatus({
        ...{ machine, nodeName: config.nodeName, ips, agentVersion, before },
        ...{ capacity: resources.capacity, allocatable: resources.allocatable },
        version: await this.#parts.version.get(),
        images: await readImages(images, callTimeoutMs),
        port: this.#parts.port(),
        problems: this.#parts.problems(),
        pressure: this.#parts.pressure(),
        further: this.#parts.further(),
        nowMs: clock.now(),
      }),
      ...(config.node.enableControllerAttachDetach && { volumesInUse: [...this.#parts.volumesInUse()] }),
    };
  }
}
