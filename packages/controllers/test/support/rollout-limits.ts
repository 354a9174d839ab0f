import { type ApiClient, type KubeList, resolveIntOrPercent } from '@keelson/core';
import { type Deployment, Pod } from '@keelson/kinds';
import { until } from '@keelson/test-support';

/** What a strategy permits. */
export interface Limits {
  /** Most pods. */
  readonly most: number;
  readonly leastAvailable: number;
}

/** The limits of a rolling update. */
export function limitsOf({ spec }: Deployment): Limits {
  const { replicas = 1, strategy } = spec;
  const { maxSurge = 0, maxUnavailable = 0 } = strategy?.rollingUpdate ?? {};
  const surge = resolveIntOrPercent(maxSurge, replicas, 'up') ?? 0;
  const unavailable = resolveIntOrPercent(maxUnavailable, replicas, 'down') ?? 0;
  return {
    most: replicas + surge,
    leastAvailable: Math.max(0, replicas - (surge === 0 && unavailable === 0 ? 1 : unavailable)),
  };
}

/**
 * Observes every change of the pods of one object, in the order of the server, and records where a controller has
 * exceeded the surge or deleted an available pod although too few would remain. While a rollout is not complete, the
 * widest limits of all specs since the last complete one apply, because the controllers may have decided by any of
 * them; each failure that the test causes permits one unavailable pod more.
 */
export class RolloutLimits {
  readonly #selector: string;
  readonly violations: string[] = [];
  readonly #pods = new Map<string, Pod>();
  readonly #stop = new AbortController();
  readonly #caused = new Set<string>();
  #limits: Limits[] = [];
  #failures = 0;
  #watching: Promise<void> | undefined;
  #list: (() => Promise<KubeList<Pod>>) | undefined;

  /** @param selector selects the pods of the object that is observed */
  constructor(selector: string) {
    this.#selector = selector;
  }

  start(api: ApiClient): void {
    const pods = api.resource(Pod).namespace('default');
    const options = { resourceVersion: '0', labelSelector: this.#selector, signal: this.#stop.signal };
    this.#list = () => pods.list({ labelSelector: this.#selector });
    this.#watching = (async () => {
      for await (const { type, object } of pods.watch(options))
        if (type !== 'BOOKMARK') this.#observe(type, object as Pod);
    })();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#watching;
  }

  /** A spec that is about to be written. */
  willApply(limits: Limits): void {
    this.#limits.push(limits);
  }

  /** The rollout of a spec is complete, so earlier ones no longer permit anything. Waits for the events until now. */
  async completed(limits: Limits): Promise<void> {
    await until(async () => {
      const { items = [] } = (await this.#list?.()) ?? {};
      const present = items.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
      const isSeen = ({ metadata }: Pod) =>
        this.#pods.get(metadata?.name ?? '')?.metadata?.resourceVersion === metadata?.resourceVersion;
      return present.length === this.#pods.size && present.every(isSeen);
    }, 'all changes of pods have been observed');
    this.#limits = [limits];
    this.#failures = 0;
  }

  /** The test is about to make a pod unavailable or to delete it. */
  willFail(name: string): void {
    this.#caused.add(name);
    this.#failures += 1;
  }

  #observe(type: 'ADDED' | 'MODIFIED' | 'DELETED', pod: Pod): void {
    const name = pod.metadata?.name ?? '';
    const before = this.#pods.get(name);
    const removed = type === 'DELETED' || pod.metadata?.deletionTimestamp !== undefined;
    if (removed) this.#pods.delete(name);
    else this.#pods.set(name, pod);
    const most = Math.max(...this.#limits.map((limits) => limits.most));
    const active = [...this.#pods.values()].filter(({ status }) => status?.phase !== 'Failed').length;
    if (type === 'ADDED' && active > most) this.violations.push(`${name}: ${active} pods, at most ${most} allowed`);
    if (!removed || before === undefined || !isAvailable(before) || this.#caused.has(name)) return;
    const available = [...this.#pods.values()].filter(isAvailable).length;
    const least = Math.min(...this.#limits.map((limits) => limits.leastAvailable)) - this.#failures;
    if (available < least)
      this.violations.push(`${name}: deleted although only ${available} remain available of at least ${least}`);
  }
}

function isAvailable({ status }: Pod): boolean {
  return (
    status?.phase === 'Running' &&
    status.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') === true
  );
}
