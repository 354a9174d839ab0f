import { formatQuantity, parseQuantity, quantityMilliValue, quantityValue } from '@keelson/core';
import type { AgentConfig, ResourceAmounts } from '../base/config/agent-config.ts';
import type { Machine } from '../machine/host/machine.ts';
import { hardReservation } from './eviction/hard-reservation.ts';

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
