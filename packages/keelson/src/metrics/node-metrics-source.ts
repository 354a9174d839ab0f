import {
  type ApiClient,
  formatTime,
  type KindDefinition,
  type KubeObject,
  type ObjectMeta,
  type ReadVirtual,
  statusErrors,
} from '@keelson/core';
import { type Clock, type Logger, pause } from '@keelson/core/runtime';
import type { NodeDialer } from '@keelson/http-koa';
import { metricsKinds, type NodeMetrics, type PodMetrics } from '@keelson/kinds';
import { type Amounts, fakeNodeLabel, fakePodUsage, sumOfUsage } from './fake-usage.ts';
import { type NodeStats, readNodeStats, type Usage } from './node-stats.ts';

/** Interval at which nodes are measured: that of metrics-server. */
const pollMs = 15_000;
/** The first two measurements are this close together, so that the first answer need not wait for a whole interval. */
const firstWindowMs = 1_000;
/** Nodes are no longer polled when no metrics were read for this time. */
const idleMs = 120_000;
const agentTimeoutMs = 5_000;
const concurrentReads = 16;

export interface NodeMetricsSourceOptions {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Two measurements of a node, between which the use of CPU is averaged. */
interface Measured {
  readonly before: NodeStats | undefined;
  readonly now: NodeStats;
}

/**
 * Serves the metrics API from the statistics of agents. They are read every 15 seconds as long as metrics are
 * read, so that a server without users of metrics does nothing. Only the two latest measurements are kept. Fake nodes
 * have no agents; what their pods use follows from their requests.
 */
export class NodeMetricsSource {
  readonly #options: NodeMetricsSourceOptions;
  readonly #measured = new Map<string, Measured>();
  /** Names of fake nodes. */
  #fakes: ReadonlySet<string> = new Set();
  #api: ApiClient | undefined;
  #dialer: NodeDialer | undefined;
  #lastRead = 0;
  #stop = new AbortController();
  /** Resolves when the first measurements are complete; undefined while metrics are not read. */
  #polling: Promise<void> | undefined;
  #loop: Promise<void> = Promise.resolve();

  constructor(options: NodeMetricsSourceOptions) {
    this.#options = options;
  }

  kinds(): readonly KindDefinition[] {
    return metricsKinds(this.#readNodes, this.#readPods);
  }

  /** Enables the metrics of a server that reaches agents. */
  connect(api: ApiClient, dialer: NodeDialer): void {
    this.#api = api;
    this.#dialer = dialer;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
  }

  readonly #readNodes: ReadVirtual<NodeMetrics> = async ({ name }) => {
    const api = await this.#measure();
    const nodes = await heads(api, 'nodes', undefined, name);
    const fakes = name === undefined ? this.#fakes : new Set([name].filter((one) => this.#fakes.has(one)));
    const amountsOf = new Map([...fakes].map((one): [string, Amounts[]] => [one, []]));
    for (const { pod, containers } of await fakePodUsage(api, fakes, undefined, undefined))
      amountsOf.get(pod.spec.nodeName ?? '')?.push(...containers.map(({ amounts }) => amounts));
    return nodes.flatMap((head) => {
      const nodeName = head.metadata?.name ?? '';
      const amounts = amountsOf.get(nodeName);
      if (amounts !== undefined) return [{ ...headOf(head, this.#fakeTimes()), usage: sumOfUsage(amounts) }];
      const measured = this.#measured.get(nodeName);
      const usage = measured && rateOf(measured.before?.usage, measured.now.usage);
      return usage === undefined ? [] : [{ ...headOf(head, usage), usage: usage.usage }];
    });
  };

  readonly #readPods: ReadVirtual<PodMetrics> = async ({ namespace, name }) => {
    const api = await this.#measure();
    const pods = new Map((await heads(api, 'pods', namespace, name)).map((head) => [head.metadata?.uid, head]));
    const found: PodMetrics[] = (await fakePodUsage(api, this.#fakes, namespace, name)).map((one) => ({
      ...headOf(one.pod, this.#fakeTimes()),
      containers: one.containers.map(({ name: of, amounts }) => ({ name: of, usage: sumOfUsage([amounts]) })),
    }));
    for (const { before, now } of this.#measured.values()) {
      for (const pod of now.pods) {
        const head = pods.get(pod.uid);
        if (head === undefined) continue;
        const earlier = before?.pods.find(({ uid }) => uid === pod.uid);
        const rates = pod.containers.map((container) => ({
          name: container.name,
          rate: rateOf(earlier?.containers.find((other) => other.name === container.name)?.usage, container.usage),
        }));
        const [first] = rates;
        // A pod of which one container has been measured only once is reported after the next measurement.
        if (first?.rate === undefined || rates.some(({ rate }) => rate === undefined)) continue;
        const containers = rates.map(({ name: of, rate }) => ({ name: of, usage: rate?.usage ?? {} }));
        found.push({ ...headOf(head, first.rate), containers });
      }
    }
    return found;
  };

  #fakeTimes() {
    return { endMs: this.#options.clock.now(), windowMs: pollMs };
  }

  /** Waits until nodes have been measured. @throws StatusError 503 when this process reaches no agents */
  async #measure(): Promise<ApiClient> {
    const [api, dialer] = [this.#api, this.#dialer];
    if (api === undefined || dialer === undefined || this.#stop.signal.aborted)
      throw statusErrors.serviceUnavailable('this server does not reach node agents');
    this.#lastRead = this.#options.clock.monotonic();
    this.#polling ??= this.#begin(api, dialer);
    await this.#polling;
    return api;
  }

  async #begin(api: ApiClient, dialer: NodeDialer): Promise<void> {
    const { clock, logger } = this.#options;
    const { signal } = this.#stop;
    const failed = (err: unknown) => {
      if (!signal.aborted) logger.warn('nodes cannot be measured', { component: 'metrics', err });
    };
    await this.#poll(api, dialer).catch(failed);
    await pause(clock, firstWindowMs, signal);
    await this.#poll(api, dialer).catch(failed);
    this.#loop = (async () => {
      for (;;) {
        await pause(clock, pollMs, signal);
        if (signal.aborted || clock.monotonic() - this.#lastRead > idleMs) break;
        await this.#poll(api, dialer).catch(failed);
      }
      this.#measured.clear();
      this.#polling = undefined;
    })();
  }

  async #poll(api: ApiClient, dialer: NodeDialer): Promise<void> {
    const { clock, logger } = this.#options;
    const nodes = (await heads(api, 'nodes', undefined, undefined)).map(({ metadata }): ObjectMeta => metadata ?? {});
    const isFake = ({ labels }: ObjectMeta) => labels?.[fakeNodeLabel] === 'true';
    this.#fakes = new Set(nodes.filter(isFake).map(({ name = '' }) => name));
    const names = nodes.filter((node) => !isFake(node)).map(({ name = '' }) => name);
    for (const name of this.#measured.keys()) if (!names.includes(name)) this.#measured.delete(name);
    const queue = names.values();
    const work = async () => {
      for (const name of queue) {
        const late = new AbortController();
        const cancel = clock.after(agentTimeoutMs, () => late.abort());
        try {
          const now = await readNodeStats(dialer, name, AbortSignal.any([this.#stop.signal, late.signal]));
          this.#measured.set(name, { before: this.#measured.get(name)?.now, now });
        } catch (err) {
          // Clients would take old measurements for current ones.
          this.#measured.delete(name);
          logger.debug('node not measured', { component: 'metrics', node: name, err });
        } finally {
          cancel();
        }
      }
    };
    await Promise.all(Array.from({ length: concurrentReads }, work));
  }
}

/** The metadata of nodes or pods; a list for one name has at most one item. */
async function heads(
  api: ApiClient,
  resource: 'nodes' | 'pods',
  namespace: string | undefined,
  name: string | undefined,
) {
  const all = api.dynamic({ group: '', version: 'v1', resource }, { metadataOnly: true });
  const client = namespace === undefined ? all : all.namespace(namespace);
  return (await client.list(name === undefined ? {} : { fieldSelector: `metadata.name=${name}` })).items;
}

interface Rate {
  readonly endMs: number;
  readonly windowMs: number;
  readonly usage: Record<string, string>;
}

/** The use between two measurements; undefined when there is one only, or when the counter began again. */
function rateOf(before: Usage | undefined, now: Usage | undefined): Rate | undefined {
  if (before === undefined || now === undefined) return undefined;
  const windowMs = now.timeMs - before.timeMs;
  const nanos = now.cpuNanoSeconds - before.cpuNanoSeconds;
  if (windowMs <= 0 || nanos < 0) return undefined;
  const usage = { cpu: `${Math.round((nanos * 1000) / windowMs)}n`, memory: `${Math.ceil(now.memoryBytes / 1024)}Ki` };
  return { endMs: now.timeMs, windowMs, usage };
}

function headOf({ metadata = {} }: KubeObject, { endMs, windowMs }: Omit<Rate, 'usage'>) {
  const { name = '', namespace, labels } = metadata;
  const timestamp = formatTime(new Date(endMs));
  return {
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(labels === undefined ? {} : { labels }),
      creationTimestamp: timestamp,
    },
    timestamp,
    window: `${(windowMs / 1000).toFixed(3)}s`,
  };
}
