import { formatQuantity, parseQuantity, quantityMilliValue, quantityValue } from '@keelson/core';
import type { AgentConfig, ResourceAmounts } from '../base/config/agent-config.ts';
import { amountOf, amountText } from '../base/config/eviction-amount.ts';
import type { Threshold } from '../base/config/eviction-threshold.ts';
import type { Machine } from '../machine/host/machine.ts';

/** Resources of nodes, and the signal whose hard threshold reserves some of them. */
const signalOf = { memory: 'memory.available', 'ephemeral-storage': 'nodefs.available' } as const;

/** The amounts that hard thresholds reserve, so that pods within the allocatable resources are not evicted. */
export function hardReservation(thresholds: readonly Threshold[], capacity: ResourceAmounts): ResourceAmounts {
  const kept: Record<string, string> = {};
  for (const [name, signal] of Object.entries(signalOf)) {
    const total = capacity[name];
    const threshold = thresholds.find((one) => one.kind === 'hard' && one.signal === signal);
    if (total === undefined || threshold === undefined) continue;
    kept[name] = amountText(amountOf(threshold.value, Number(quantityValue(total))), false);
  }
  return kept;
}

export interface NodeResourcesOptions {
  readonly config: Pick<AgentConfig, 'clusterReserved' | 'systemReserved' | 'eviction' | 'gates'>;
  readonly machine: Pick<Machine, 'cores' | 'memoryBytes'>;
  readonly maxPods: number;
  /** Size of the file system of the agent's directory, bytes. */
  readonly diskBytes: () => Promise<number>;
}

/** Capacity and allocatable resources of the node. */
export class NodeResources {
  readonly #options: NodeResourcesOptions;
  #capacity: Readonly<Record<string, string>>;
  #allocatable: Readonly<Record<string, string>> = {};

  constructor(options: NodeResourcesOptions) {
    this.#options = options;
    this.#capacity = nodeCapacity(options.machine, options.maxPods);
    this.#setAside();
  }

  /**
   * Reads the size of the disk if the gate LocalStorageCapacityIsolation is on. @throws the error of the system call
   */
  async start(): Promise<void> {
    const { config, diskBytes } = this.#options;
    if (config.gates['LocalStorageCapacityIsolation'] !== true) return;
    this.#capacity = { ...this.#capacity, 'ephemeral-storage': kibibytes(await diskBytes()) };
    this.#setAside();
  }

  get capacity(): Readonly<Record<string, string>> {
    return this.#capacity;
  }

  get allocatable(): Readonly<Record<string, string>> {
    return this.#allocatable;
  }

  #setAside(): void {
    const { clusterReserved, systemReserved, eviction } = this.#options.config;
    const kept = eviction.reservesThresholds ? hardReservation(eviction.thresholds, this.#capacity) : {};
    this.#allocatable = nodeAllocatable(this.#capacity, clusterReserved, systemReserved, kept);
  }
}

function kibibytes(bytes: number): string {
  return `${Math.floor(bytes / 1024)}Ki`;
}

/** The capacity of the host. */
export function nodeCapacity(machine: Pick<Machine, 'cores' | 'memoryBytes'>, pods: number): Record<string, string> {
  return { cpu: String(machine.cores), memory: kibibytes(machine.memoryBytes), pods: String(pods) };
}

/** The capacity minus all reservations, at least 0. */
export function nodeAllocatable(
  capacity: ResourceAmounts,
  ...reserved: readonly ResourceAmounts[]
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(capacity).map(([name, amount]) => {
      const taken = reserved.map((amounts) => amounts[name]).filter((text) => text !== undefined);
      return [name, taken.length === 0 ? amount : less(name, amount, taken)];
    }),
  );
}

function less(name: string, amount: string, taken: readonly string[]): string {
  if (name === 'cpu') {
    const left = taken.reduce((sum, text) => sum - quantityMilliValue(text), quantityMilliValue(amount));
    return formatQuantity({ unscaled: left < 0n ? 0n : left, exponent: -3, format: 'decimal' });
  }
  const left = taken.reduce((sum, text) => sum - quantityValue(text), quantityValue(amount));
  return formatQuantity({ unscaled: left < 0n ? 0n : left, exponent: 0, format: parseQuantity(amount).format });
}
