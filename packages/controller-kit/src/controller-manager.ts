import { ApiEventRecorder } from '@keelson/client';
import type { KindDefinition, KubeObject } from '@keelson/core';
import type { Service } from '@keelson/core/runtime';
import type { AnyController, ControllerDefinition, ControllerHost } from './controller-definition.ts';
import { ControllerRunner, type Copies } from './controller-runner.ts';
import type { ReconcileRecord } from './reconcile-trace.ts';
import { type Selection, SharedInformer } from './shared-informer.ts';

export interface ControllerManagerOptions extends ControllerHost {
  readonly controllers: readonly AnyController[];
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
  readonly #informers = new Map<string, SharedInformer>();
  readonly #runners: ControllerRunner[] = [];
  readonly #recorders: ApiEventRecorder[] = [];
  #stopped = false;

  /** @throws Error when two controllers have the same name, or one declares a kind with different selections */
  constructor(options: ControllerManagerOptions) {
    const { controllers, ...host } = options;
    for (const definition of controllers) {
      if (this.#runners.some(({ name }) => name === definition.name))
        throw new Error(`two controllers have the name ${definition.name}`);
      const recorder = new ApiEventRecorder({ ...host, ...eventLimit, source: { component: definition.name } });
      this.#recorders.push(recorder);
      this.#runners.push(new ControllerRunner(definition, this.#copiesOf(definition, host), host, recorder));
    }
  }

  async start(): Promise<void> {
    await Promise.all(
      this.#runners.map(async (runner) => {
        await Promise.all(runner.informers.map(({ informer }) => informer.start()));
        if (!this.#stopped) runner.run();
      }),
    );
  }

  /** The kinds that have not been listed yet. */
  waitingFor(): string | undefined {
    const kinds = [...this.#informers.values()].filter(({ informer }) => !informer.synced);
    return kinds.length === 0
      ? undefined
      : `the first list of ${kinds.map(({ kind }) => kind.names.plural).join(', ')}`;
  }

  /** Aborts the signals of running reconciles and waits for them. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#runners.map((runner) => runner.stop()));
    await Promise.all([...this.#informers.values()].map(({ informer }) => informer.stop()));
    await Promise.all(this.#recorders.map((recorder) => recorder.stop()));
  }

  /** The last 100 runs of a controller, the oldest first. */
  trace(controller: string): readonly ReconcileRecord[] {
    return this.#runners.find(({ name }) => name === controller)?.trace ?? [];
  }

  /** The local copies that a controller declares, by {@link resourceId}. */
  #copiesOf({ name, kind, select, owns = [], related = [] }: ControllerDefinition, host: ControllerHost): Copies {
    const copies = new Map<string, SharedInformer>();
    const declared = [{ kind, select }, ...owns.map((owned) => ({ kind: owned, select: undefined })), ...related];
    for (const entry of declared) {
      const id = resourceId(entry.kind);
      const copy = this.#informer(entry.kind, host, entry.select);
      if (copies.has(id) && copies.get(id) !== copy)
        throw new Error(`the controller ${name} declares ${entry.kind.names.plural} with different selections`);
      copies.set(id, copy);
    }
    return copies;
  }

  #informer(kind: KindDefinition<KubeObject>, host: ControllerHost, select: Selection = {}): SharedInformer {
    const { labelSelector = '', fieldSelector = '', metadataOnly = false } = select;
    const id = JSON.stringify([resourceId(kind), labelSelector, fieldSelector, metadataOnly]);
    const known = this.#informers.get(id) ?? new SharedInformer(kind, host, select);
    this.#informers.set(id, known);
    return known;
  }
}

function resourceId({ group, version, names }: KindDefinition): string {
  return `${group}/${version}/${names.plural}`;
}
