import { Backoff } from '@keelson/client';
import type { Image, ImageService } from '@keelson/container-runtime';
import { type ApiClient, isStatusError } from '@keelson/core';
import { equalJson } from '@keelson/core/internal';
import { type Clock, type Logger, pause } from '@keelson/core/runtime';
import { type coreV1, Node } from '@keelson/kinds';
import type { NodeConfig } from '../base/config/agent-config.ts';
import type { EventRecorder } from '../base/events/event-recorder.ts';
import { withDeadline } from '../base/with-deadline.ts';
import { newNode, nodeAddresses, reconcilePatch } from './node-object.ts';

export interface NodeReporterOptions {
  readonly api: ApiClient;
  readonly nodeName: string;
  readonly architecture: string;
  readonly config: NodeConfig;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: EventRecorder;
  /** The status now, given the conditions that the API has. */
  readonly status: (before: readonly coreV1.NodeCondition[]) => Promise<coreV1.NodeStatus>;
  /** Called with the Node object of the API before each report. */
  readonly onNode?: (node: Node) => Promise<void>;
}

const attempts = 5;

/** Event reasons for changes of conditions: to true, to false. */
const changeReasons: Readonly<Record<string, readonly [string, string]>> = {
  Ready: ['NodeReady', 'NodeNotReady'],
  MemoryPressure: ['NodeHasInsufficientMemory', 'NodeHasSufficientMemory'],
  DiskPressure: ['NodeHasDiskPressure', 'NodeHasNoDiskPressure'],
};

/** Registers the node and reports its status to the API server. */
export class NodeReporter {
  readonly #options: NodeReporterOptions;
  readonly #stop = new AbortController();
  #wake = new AbortController();
  #registered = false;
  /** Whether the node was cordoned at the last report. */
  #cordoned = false;
  #running: Promise<void> = Promise.resolve();

  constructor(options: NodeReporterOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#wake.abort();
    await this.#running;
  }

  /** Requests a report of the status now, because it has changed. */
  requestReport(): void {
    this.#wake.abort();
  }

  async #run(): Promise<void> {
    const { clock, config, logger } = this.#options;
    const { signal } = this.#stop;
    if (config.register) await this.#register(signal);
    while (!signal.aborted) {
      this.#wake = new AbortController();
      await this.#report(signal).catch((err) => {
        if (!signal.aborted) logger.warn('updating the node status failed', { component: 'node', err });
      });
      if (!signal.aborted) await pause(clock, config.statusUpdateMs, this.#wake.signal);
    }
  }

  async #register(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options;
    const backoff = new Backoff(clock, 100, 7_000);
    while (!signal.aborted && !this.#registered) {
      try {
        await this.#createOrReconcile(signal);
        this.#registered = true;
      } catch (err) {
        if (signal.aborted) return;
        logger.warn('registering the node failed', { component: 'node', err });
        await backoff.wait(signal);
      }
    }
  }

  async #createOrReconcile(signal: AbortSignal): Promise<void> {
    const { api, nodeName, architecture, config, status } = this.#options;
    const nodes = api.resource(Node);
    try {
      const first = await status([]);
      const addresses = nodeAddresses(first.addresses ?? [], [], config);
      await nodes.create(newNode(nodeName, architecture, config, { ...first, addresses }), { signal });
    } catch (error) {
      if (!isStatusError(error, 'AlreadyExists')) throw error;
      const patch = reconcilePatch(await nodes.get(nodeName, { signal }), nodeName, architecture, config);
      if (patch !== undefined) await nodes.patch(nodeName, 'merge', patch, { signal });
    }
  }

  /** Several attempts per period; each may take no longer than the period. */
  async #report(signal: AbortSignal): Promise<void> {
    const { clock, config } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      try {
        await withDeadline(clock, config.statusUpdateMs, signal, (within) => this.#patch(attempt, within));
        return;
      } catch (error) {
        if (signal.aborted || attempt >= attempts) throw error;
        if (isStatusError(error, 'NotFound') && config.register) await this.#createOrReconcile(signal);
      }
    }
  }

  async #patch(attempt: number, signal: AbortSignal): Promise<void> {
    const { api, nodeName, config, status, onNode } = this.#options;
    const nodes = api.resource(Node);
    // The first read uses the cache, which saves a read of the store; a retry needs the current object.
    const node = await nodes.get(nodeName, attempt === 1 ? { resourceVersion: '0', signal } : { signal });
    const old = node.status ?? {};
    await onNode?.(node);
    const found = await status(old.conditions ?? []);
    const next = { ...found, addresses: nodeAddresses(found.addresses ?? [], old.addresses ?? [], config) };
    const patch: Record<string, unknown> = {};
    for (const key of Object.keys(next) as (keyof coreV1.NodeStatus)[])
      if (!equalJson(old[key], next[key])) patch[key] = next[key];
    if (patch['addresses'] !== undefined) patch['addresses'] = [...next.addresses, { $patch: 'replace' }];
    await nodes.patchSubresource(nodeName, 'status', 'strategic', { status: patch }, { signal });
    this.#tell(node, old, next);
  }

  #tell(node: Node, old: coreV1.NodeStatus, next: coreV1.NodeStatus): void {
    const { events, nodeName } = this.#options;
    const subject = { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: node.metadata?.uid ?? nodeName };
    for (const condition of next.conditions ?? []) {
      const before = old.conditions?.find(({ type }) => type === condition.type);
      const word = changeReasons[condition.type]?.[condition.status === 'True' ? 0 : 1];
      if (before === undefined || before.status === condition.status || word === undefined) continue;
      events.record(subject, 'Normal', word, `Node ${nodeName} status is now: ${word}`);
    }
    const cordoned = node.spec?.unschedulable === true;
    if (cordoned !== this.#cordoned) {
      const word = cordoned ? 'NodeNotSchedulable' : 'NodeSchedulable';
      events.record(subject, 'Normal', word, `Node ${nodeName} status is now: ${word}`);
    }
    this.#cordoned = cordoned;
    const boot = old.nodeInfo?.bootID;
    if (boot && next.nodeInfo?.bootID && boot !== next.nodeInfo.bootID) {
      events.record(
        subject,
        'Warning',
        'Rebooted',
        `Node ${nodeName} has been rebooted, boot id: ${next.nodeInfo.bootID}`,
      );
    }
  }
}

/** The images of the image store; empty when it does not answer. */
export async function readImages(images: ImageService, timeoutMs: number): Promise<readonly Image[]> {
  return images.listImages(undefined, { timeoutMs }).catch(() => []);
}
