import { ApiEventRecorder } from '@keelson/client';
import type { Service } from '@keelson/core/runtime';
import type { AnyController, ControllerDefinition, ControllerHost } from './controller-definition.ts';
import { ControllerRunner } from './controller-runner.ts';
import { InformerPool, resourceId } from './informer-pool.ts';
import type { ReconcileRecord } from './reconcile-trace.ts';
import type { SharedInformer } from './shared-informer.ts';

/** Options of a {@link ControllerManager}: the controllers, and what they need from the process. */
export interface ControllerManagerOptions extends ControllerHost {
  readonly controllers: readonly AnyController[];
  /**
   * Informers that are shared with other managers of the process. Default: the controllers of this manager share
   * informers only with each other.
   */
  readonly informers?: InformerPool;
}

/** A limit of the events of one controller; see also the limit per object in `ApiEventRecorder`. */
const eventLimit = { qps: 50, burst: 200 };

/**
 * Runs controllers: one informer for each kind that any of them reads, and one work queue for each controller. A
 * controller begins when all informers of its kinds have completed their first list; a kind that cannot be listed
 * delays only its own controllers.
 */
export class ControllerManager implements Service {
  readonly name = 'controllers';
  readonly #pool: InformerPool;
  /** The acquired informers; an informer that was acquired several times is contained as often. */
  readonly #acquired: SharedInformer[] = [];
  readonly #runners: ControllerRunner[] = [];
  readonly #recorders: ApiEventRecorder[] = [];
  readonly #stopped = new AbortController();
  #stopping: Promise<void> | undefined;

  /** @throws Error when two controllers have the same name, or one declares a kind with different selections */
  constructor({ controllers, informers, ...host }: ControllerManagerOptions) {
    this.#pool = informers ?? new InformerPool(host);
    for (const definition of controllers) {
      if (this.#runners.some(({ name }) => name === definition.name))
        throw new Error(`two controllers have the name ${definition.name}`);
      const component = definition.eventSource ?? definition.name;
      const recorder = new ApiEventRecorder({ ...host, ...eventLimit, source: { component } });
      this.#recorders.push(recorder);
      this.#runners.push(new ControllerRunner(definition, this.#copiesOf(definition), host, recorder));
    }
  }

  async start(): Promise<void> {
    await Promise.all(this.#runners.map((runner) => runner.start(this.#stopped.signal)));
  }

  /** The kinds that are being listed for the first time. */
  waitingFor(): string | undefined {
    const kinds = new Set<string>();
    for (const { informer, kind } of this.#acquired)
      if (informer.started && !informer.synced) kinds.add(kind.names.plural);
    return kinds.size === 0 ? undefined : `the first list of ${[...kinds].join(', ')}`;
  }

  /** Aborts the signals of running reconciles and waits for them. A stopped manager cannot be started again. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.all(this.#runners.map((runner) => runner.stop()));
    await Promise.all(this.#acquired.map((informer) => this.#pool.release(informer)));
    await Promise.all(this.#recorders.map((recorder) => recorder.stop()));
  }

  /** The last 100 runs of a controller, the oldest first. */
  trace(controller: string): readonly ReconcileRecord[] {
    return this.#runners.find(({ name }) => name === controller)?.trace ?? [];
  }

  /** The local copies that a controller declares. */
  #copiesOf({ name, kind, select, owns = [], related = [] }: ControllerDefinition): Map<string, SharedInformer> {
    const copies = new Map<string, SharedInformer>();
    const declared = [{ kind, select }, ...owns.map((owned) => ({ kind: owned, select: undefined })), ...related];
    for (const entry of declared) {
      const id = resourceId(entry.kind);
      const copy = this.#pool.acquire(entry.kind, entry.select);
      this.#acquired.push(copy);
      if (copies.has(id) && copies.get(id) !== copy)
        throw new Error(`the controller ${name} declares ${entry.kind.names.plural} with different selections`);
      copies.set(id, copy);
    }
    return copies;
  }
}
