import { Backoff } from '@keelson/client';
import { type ApiClient, isStatusError, type ResourceClient } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import { Node, Pod } from '@keelson/kinds';
import type { PodConfigReader } from '../base/contracts/pod-source.ts';
import { isMirrorPod, isStaticPod, PodAnnotation } from '../base/pod/pod-spec.ts';

export interface MirrorPodsOptions {
  readonly client: ApiClient;
  readonly nodeName: string;
  readonly config: PodConfigReader;
  readonly clock: Clock;
  readonly logger: Logger;
}

const nameOf = ({ metadata }: Pod): string => `${metadata?.namespace}/${metadata?.name}`;
const hasReason = (error: unknown, reason: string): boolean => isStatusError(error) && error.status.reason === reason;

/** The hash of the manifest that a mirror pod represents. */
const hashOf = ({ metadata }: Pod): string => metadata?.annotations?.[PodAnnotation.hash] ?? metadata?.uid ?? '';

/** The mirror pod of a static pod, owned by its node so that it is deleted with the Node object. */
export function mirrorOf(pod: Pod, node: Node): Pod {
  const { name = '', namespace = '', labels, annotations } = pod.metadata ?? {};
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      ...(labels === undefined ? {} : { labels }),
      annotations: { ...annotations, [PodAnnotation.mirror]: hashOf(pod) },
      ownerReferences: [
        {
          apiVersion: Node.apiVersion,
          kind: Node.kind,
          name: node.metadata?.name ?? '',
          uid: node.metadata?.uid ?? '',
          controller: true,
        },
      ],
    },
    spec: pod.spec,
  };
}

/**
 * Maintains a mirror pod for each static pod. A mirror pod that was deleted, or that represents another state of the
 * manifest, is created again. Mirror pods of removed static pods are deleted without a grace period, since they run
 * no containers. Changes of a mirror pod never affect the static pod.
 */
export class MirrorPods {
  readonly #options: MirrorPodsOptions;
  readonly #abort = new AbortController();
  readonly #backoff: Backoff;
  #leave: (() => void) | undefined;
  #running: Promise<void> | undefined;
  #again = false;
  /** The first complete reconciliation, after every source was read, has begun. */
  #begun = false;
  #cancelRetry: (() => void) | undefined;

  constructor(options: MirrorPodsOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.clock, 500, 10_000);
  }

  start(): void {
    this.#leave = this.#options.config.subscribe((_, changes) => {
      // Most changes concern pods without a mirror pod.
      if (!this.#begun || changes.some(({ pod }) => isStaticPod(pod) || isMirrorPod(pod))) this.#reconcile();
    });
    this.#reconcile();
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    this.#leave?.();
    this.#cancelRetry?.();
    await this.#running;
  }

  #reconcile(): void {
    // Before every source was read, a mirror pod without a static pod may still be needed.
    if (this.#abort.signal.aborted || !this.#options.config.seenAllSources()) return;
    this.#begun = true;
    this.#again = true;
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    while (this.#again && !this.#abort.signal.aborted) {
      this.#again = false;
      const complete = await this.#pass();
      if (complete) this.#backoff.reset();
      else if (!this.#again && !this.#abort.signal.aborted) {
        this.#cancelRetry = this.#options.clock.after(this.#backoff.next(), () => this.#reconcile());
      }
    }
    this.#running = undefined;
  }

  /** Reconciles all mirror pods once; false when something has to be retried. */
  async #pass(): Promise<boolean> {
    const pods = this.#options.config.pods();
    const copies = new Map(pods.filter(isMirrorPod).map((pod) => [nameOf(pod), pod]));
    const wanted = pods.filter((pod) => isStaticPod(pod) && !isMirrorPod(pod));
    const names = new Set(wanted.map(nameOf));
    let complete = true;
    for (const pod of wanted)
      complete = (await this.#tried(pod, () => this.#ensure(pod, copies.get(nameOf(pod))))) && complete;
    for (const [name, copy] of copies) {
      if (!names.has(name)) complete = (await this.#tried(copy, () => this.#delete(copy))) && complete;
    }
    return complete;
  }

  async #tried(pod: Pod, work: () => Promise<void>): Promise<boolean> {
    if (this.#abort.signal.aborted) return true;
    try {
      await work();
      return true;
    } catch (err) {
      this.#options.logger.warn('reconciling a mirror pod failed', { pod: nameOf(pod), err });
      return false;
    }
  }

  async #ensure(pod: Pod, copy: Pod | undefined): Promise<void> {
    if (copy !== undefined) {
      const { annotations, deletionTimestamp } = copy.metadata ?? {};
      const same = annotations?.[PodAnnotation.mirror] === hashOf(pod);
      if (same && deletionTimestamp === undefined) return;
      await this.#delete(copy);
    }
    const { signal } = this.#abort;
    // Read for each mirror pod: a Node that was registered again has another UID.
    const node = await this.#options.client.resource(Node).get(this.#options.nodeName, { signal });
    try {
      await this.#client(pod).create(mirrorOf(pod, node), { signal });
    } catch (error) {
      // Either our mirror pod, which the watch has not delivered yet, or a pod of another owner, which must not be
      // deleted.
      if (!hasReason(error, 'AlreadyExists')) throw error;
      await this.#checkOwn(pod);
    }
  }

  async #checkOwn(pod: Pod): Promise<void> {
    const found = await this.#client(pod).get(pod.metadata?.name ?? '', { signal: this.#abort.signal });
    if (!isMirrorPod(found)) throw new Error('another pod at the API has the name of a static pod');
  }

  async #delete(copy: Pod): Promise<void> {
    const { name = '', uid } = copy.metadata ?? {};
    const preconditions = uid === undefined ? {} : { preconditions: { uid } };
    try {
      await this.#client(copy).delete(name, { gracePeriodSeconds: 0, ...preconditions, signal: this.#abort.signal });
    } catch (error) {
      // Already deleted or replaced.
      if (!hasReason(error, 'NotFound') && !hasReason(error, 'Conflict')) throw error;
    }
  }

  #client(pod: Pod): ResourceClient<Pod> {
    return this.#options.client.resource(Pod).namespace(pod.metadata?.namespace ?? '');
  }
}
