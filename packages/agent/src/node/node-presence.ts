import type { ContainerRuntime, ImageService } from '@keelson/container-runtime';
import type { ApiClient, Clock, Logger } from '@keelson/core';
import type { coreV1 } from '@keelson/kinds';
import type { AgentConfig } from '../contracts/agent-config.ts';
import type { EventRecorder } from '../contracts/event-recorder.ts';
import { KnownVersion } from './known-version.ts';
import type { Machine } from './machine.ts';
import { NodeLease } from './node-lease.ts';
import { NodeReporter, type NodeReporterOptions, readImages } from './node-reporter.ts';
import { type NodeFindings, nodeStatus } from './node-status.ts';

export interface NodePresenceParts extends Pick<NodeFindings, 'ips' | 'capacity' | 'allocatable' | 'agentVersion'> {
  readonly api: ApiClient;
  readonly config: AgentConfig;
  readonly machine: Machine;
  readonly runtime: Pick<ContainerRuntime, 'version'>;
  readonly images: ImageService;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: EventRecorder;
  readonly callTimeoutMs: number;
  /** Why the node cannot run pods; empty when it can. */
  readonly problems: () => readonly string[];
  readonly volumesInUse: () => Iterable<string>;
  readonly onNode: NonNullable<NodeReporterOptions['onNode']>;
}

const leaseSeconds = 40;

/** What the API server knows the node by: its object with a status that is kept fresh, and its lease. */
export class NodePresence {
  readonly #parts: NodePresenceParts;
  readonly #version: KnownVersion;
  readonly #reporter: NodeReporter;
  readonly #lease: NodeLease;

  constructor(parts: NodePresenceParts) {
    const { api, config, machine, runtime, clock, logger, events, callTimeoutMs, onNode } = parts;
    const { nodeName } = config;
    this.#parts = parts;
    this.#version = new KnownVersion(runtime, clock, callTimeoutMs);
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

  /** Something that the status says has changed: the next report is due now. */
  poke(): void {
    this.#reporter.poke();
  }

  async #status(before: readonly coreV1.NodeCondition[]): Promise<coreV1.NodeStatus> {
    const { config, machine, ips, capacity, allocatable, agentVersion, images, clock, callTimeoutMs } = this.#parts;
    return {
      ...nodeStatus({
        ...{ machine, nodeName: config.nodeName, ips, capacity, allocatable, agentVersion, before },
        version: await this.#version.get(),
        images: await readImages(images, callTimeoutMs),
        port: config.server.enabled ? config.server.port : 0,
        problems: this.#parts.problems(),
        nowMs: clock.now(),
      }),
      ...(config.node.enableControllerAttachDetach && { volumesInUse: [...this.#parts.volumesInUse()] }),
    };
  }
}
