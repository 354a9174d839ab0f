import { type ApiClient, quantityMilliValue, quantityValue } from '@keelson/core';
import { type coreV1, Pod } from '@keelson/kinds';

/** Label of nodes whose pods run nothing. */
export const fakeNodeLabel = 'keelson.dev/fake';
/** What a pod of a fake node uses, in per cent of its requests. */
export const fakeUsageAnnotation = 'keelson.dev/fake-usage-percent';
const defaultPercent = 100;
const maxPercent = 100_000;

/** A use of resources: thousandths of a core, and bytes. */
export interface Amounts {
  readonly milliCpu: bigint;
  readonly memory: bigint;
}

/** The use of resources by a running pod of a fake node. */
export interface FakePodUsage {
  readonly pod: Pod;
  readonly containers: readonly { readonly name: string; readonly amounts: Amounts }[];
}

/** Returns the running pods of fake nodes with their use, which follows from their requests and the annotation. */
export async function fakePodUsage(
  api: ApiClient,
  nodes: ReadonlySet<string>,
  namespace: string | undefined,
  name: string | undefined,
): Promise<FakePodUsage[]> {
  if (nodes.size === 0) return [];
  const all = api.resource(Pod);
  const client = namespace === undefined ? all : all.namespace(namespace);
  const { items } = await client.list(name === undefined ? {} : { fieldSelector: `metadata.name=${name}` });
  const used = items.filter(({ spec, status }) => nodes.has(spec.nodeName ?? '') && status?.phase === 'Running');
  return used.map((pod) => {
    const percent = percentOf(pod.metadata?.annotations?.[fakeUsageAnnotation]);
    return {
      pod,
      containers: pod.spec.containers.map((one) => ({ name: one.name, amounts: amountsOf(one, percent) })),
    };
  });
}

/** Adds up the use of containers, in the notation of the metrics API. */
export function sumOfUsage(all: readonly Amounts[]): Record<string, string> {
  let [milliCpu, memory] = [0n, 0n];
  for (const one of all) {
    milliCpu += one.milliCpu;
    memory += one.memory;
  }
  return { cpu: `${milliCpu}m`, memory: `${memory >> 10n}Ki` };
}

function amountsOf({ resources: { requests = {} } = {} }: coreV1.Container, percent: bigint): Amounts {
  return {
    milliCpu: (quantityMilliValue(requests['cpu'] ?? '0') * percent) / 100n,
    memory: (quantityValue(requests['memory'] ?? '0') * percent) / 100n,
  };
}

/** A value that is no number of 0 to 100,000 counts as absent. */
function percentOf(value: string | undefined): bigint {
  const percent = value === undefined || value.trim() === '' ? Number.NaN : Number(value);
  return BigInt(percent >= 0 && percent <= maxPercent ? Math.round(percent) : defaultPercent);
}
