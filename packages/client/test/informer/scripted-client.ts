import {
  type ClientWatchEvent,
  type KubeList,
  type KubeObject,
  type ListOptions,
  type ResourceClient,
  StatusError,
  type StatusReason,
  type Stored,
  type WatchOptions,
} from '@keelson/core';

export const thing = (name: string, resourceVersion: number | string, uid = `u-${name}`): Stored => ({
  metadata: { name, namespace: 'n', uid, resourceVersion: String(resourceVersion), creationTimestamp: '' },
});

export const failure = (code: number, reason: StatusReason, cause?: string) =>
  new StatusError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    code,
    reason,
    ...(cause === undefined ? {} : { details: { causes: [{ reason: cause }] } }),
  });

type Event = ClientWatchEvent<KubeObject>;

/** A watch whose events the test determines. */
export interface ScriptedWatch {
  readonly options: WatchOptions;
  send(...events: Event[]): void;
  end(): void;
  fail(error: Error): void;
}

/** Answers lists and watches as scripted by the test, and records the requests. */
export class ScriptedClient {
  readonly lists: ListOptions[] = [];
  readonly watches: ScriptedWatch[] = [];
  /** Answers to the next lists; an Error is thrown, a function may wait. */
  answers: (KubeList | Error | (() => Promise<KubeList>))[] = [];
  #waiting: (() => void)[] = [];

  readonly client = {
    resourceName: { group: '', version: 'v1', resource: 'things' },
    list: async (options: ListOptions = {}) => {
      const { signal: _signal, ...asked } = options;
      this.lists.push(asked);
      this.#notify();
      const answer = this.answers.shift();
      if (answer === undefined) throw new Error('no list was scripted');
      if (answer instanceof Error) throw answer;
      return typeof answer === 'function' ? answer() : answer;
    },
    watch: (options: WatchOptions = {}) => this.#watch(options),
  } as unknown as ResourceClient<KubeObject>;

  list(resourceVersion: number, items: KubeObject[], next?: string): KubeList {
    return {
      metadata: { resourceVersion: String(resourceVersion), ...(next === undefined ? {} : { continue: next }) },
      items,
    };
  }

  /** Resolves when the condition holds after some call of the informer. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async watch(at: number): Promise<ScriptedWatch> {
    await this.until(() => this.watches.length > at);
    return this.watches[at] as ScriptedWatch;
  }

  #notify(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  async *#watch(options: WatchOptions): AsyncGenerator<Event> {
    const queue: (Event | Error | 'end')[] = [];
    let wake = () => {};
    const push = (...entries: (Event | Error | 'end')[]) => {
      queue.push(...entries);
      wake();
    };
    options.signal?.addEventListener('abort', () => push('end'));
    this.watches.push({ options, send: push, end: () => push('end'), fail: push });
    this.#notify();
    for (;;) {
      const entry = queue.shift();
      if (entry === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      } else if (entry === 'end') return;
      else if (entry instanceof Error) throw entry;
      else yield entry;
    }
  }
}
