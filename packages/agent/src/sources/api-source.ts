import { Informer } from '@keelson/client';
import type { ApiClient, Clock, Logger } from '@keelson/core';
import { Pod } from '@keelson/kinds';
import type { PodSink, PodSource } from '../contracts/pod-source.ts';
import { PodAnnotation } from '../pods/pod-annotations.ts';
import type { Checkpoints } from './checkpoints.ts';

export interface ApiSourceOptions {
  readonly client: ApiClient;
  readonly nodeName: string;
  readonly sink: PodSink;
  /** Takes pods that were remembered; they do not count as an answer of the server. */
  readonly restore: (pods: readonly Pod[]) => void;
  readonly checkpoints: Checkpoints | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Says that it came from the API, whatever it says itself: other sources may be trusted with more. */
function marked(pod: Pod): Pod {
  const meta = pod.metadata ?? {};
  return { ...pod, metadata: { ...meta, annotations: { ...meta.annotations, [PodAnnotation.source]: 'api' } } };
}

/** Pods that the API server has bound to this node, mirror pods among them. Silent while there is no server. */
export class ApiSource implements PodSource {
  readonly name = 'api';
  readonly #options: ApiSourceOptions;
  readonly #informer: Informer<Pod>;
  #due: NodeJS.Immediate | undefined;
  #stopped = false;

  constructor(options: ApiSourceOptions) {
    this.#options = options;
    const { client, nodeName, clock, logger } = options;
    const changed = () => this.#schedule();
    this.#informer = new Informer({
      client: client.resource(Pod),
      fieldSelector: `spec.nodeName=${nodeName}`,
      keep: marked,
      handlers: { added: changed, updated: changed, deleted: changed },
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
    // The first list may be a long time coming; an empty one is an answer too.
    void this.#informer.start().then(() => this.#schedule());
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#due !== undefined) clearImmediate(this.#due);
    await this.#informer.stop();
    await this.#options.checkpoints?.settled();
  }

  /** Changes that come together are told together. */
  #schedule(): void {
    this.#due ??= setImmediate(() => {
      this.#due = undefined;
      if (this.#stopped || !this.#informer.synced) return;
      const pods = [...this.#informer.values()];
      this.#options.sink(pods);
      void this.#options.checkpoints?.save(pods);
    });
  }
}
