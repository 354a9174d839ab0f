import { Informer } from '@keelson/client';
import type { ApiClient } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import { Pod } from '@keelson/kinds';
import type { PodChangesSink, PodSink, PodSource } from '../base/contracts/pod-source.ts';
import { PodAnnotation, uidOf } from '../base/pod/pod-spec.ts';
import type { Checkpoints } from './checkpoints.ts';

export interface ApiSourceOptions {
  readonly client: ApiClient;
  readonly nodeName: string;
  readonly sink: PodSink;
  readonly changes: PodChangesSink;
  /** Delivers pods of checkpoints; they do not count as an answer of the server. */
  readonly restore: (pods: readonly Pod[]) => void;
  readonly checkpoints: Checkpoints | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Marks a pod as coming from the API, overwriting a forged annotation: other sources may have more permissions. */
function marked(pod: Pod): Pod {
  const meta = pod.metadata ?? {};
  return { ...pod, metadata: { ...meta, annotations: { ...meta.annotations, [PodAnnotation.source]: 'api' } } };
}

/**
 * Pods that are bound to this node in the API, including mirror pods. Delivers nothing while the server is unreachable.
 */
export class ApiSource implements PodSource {
  readonly name = 'api';
  readonly #options: ApiSourceOptions;
  readonly #informer: Informer<Pod>;
  /** Changes since the last delivery, by UID; undefined = deleted. */
  readonly #changed = new Map<string, Pod | undefined>();
  #due: NodeJS.Immediate | undefined;
  /** A complete set was delivered; from then on only changes are. */
  #deliveredAll = false;
  #stopped = false;

  constructor(options: ApiSourceOptions) {
    this.#options = options;
    const { client, nodeName, clock, logger } = options;
    this.#informer = new Informer({
      client: client.resource(Pod),
      fieldSelector: `spec.nodeName=${nodeName}`,
      keep: marked,
      handlers: {
        added: (pod) => this.#note(pod, undefined),
        updated: (pod, before) => this.#note(pod, before),
        deleted: (pod) => this.#note(undefined, pod),
      },
      clock,
      logger,
    });
  }

  async start(): Promise<void> {
    const { checkpoints, restore, logger } = this.#options;
    if (checkpoints !== undefined) {
      try {
        restore((await checkpoints.load()).map(marked));
      } catch (err) {
        logger.warn('checkpoints cannot be read', { err });
      }
    }
    // The first list may take long; an empty list is delivered too.
    void this.#informer.start().then(() => this.#schedule());
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#due !== undefined) clearImmediate(this.#due);
    await this.#informer.stop();
    await this.#options.checkpoints?.settled();
  }

  /** The name of a pod may have been reused by another pod. */
  #note(pod: Pod | undefined, before: Pod | undefined): void {
    if (before !== undefined) this.#changed.set(uidOf(before), undefined);
    if (pod !== undefined) this.#changed.set(uidOf(pod), pod);
    this.#schedule();
  }

  /** Delivers changes of one turn together. */
  #schedule(): void {
    this.#due ??= setImmediate(() => {
      this.#due = undefined;
      if (this.#stopped || !this.#informer.synced) return;
      const { sink, changes, checkpoints } = this.#options;
      const changed = [...this.#changed];
      this.#changed.clear();
      if (this.#deliveredAll) {
        const there = changed.map(([, pod]) => pod).filter((pod) => pod !== undefined);
        const gone = changed.filter(([, pod]) => pod === undefined).map(([uid]) => uid);
        changes(there, gone);
      } else sink([...this.#informer.values()]);
      this.#deliveredAll = true;
      void checkpoints?.save([...this.#informer.values()]);
    });
  }
}
