import { quantityMilliValue, quantityValue } from '@keelson/core';
import type { ResourceAmounts } from '../../base/config/agent-config.ts';
import { MachineError } from '../../base/machine-error.ts';
import type { Machine } from '../host/machine.ts';
import type { CgroupLimits } from './limit-files.ts';
import { sharesOf } from './pod-limits.ts';

/** CPU in thousandths, memory in bytes. */
export interface NodeShare {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
}

const cpuOf = ({ cpu }: ResourceAmounts) => (cpu === undefined ? 0 : Number(quantityMilliValue(cpu)));
const memoryOf = ({ memory }: ResourceAmounts) => (memory === undefined ? 0 : Number(quantityValue(memory)));

/**
 * The share of all pods: what the machine has without what is set aside. Eviction keeps its own distance from it.
 * @throws MachineError
 */
export function podsShare(
  machine: Pick<Machine, 'cores' | 'memoryBytes'>,
  ...reserved: readonly ResourceAmounts[]
): NodeShare {
  const cpuMilli = reserved.reduce((left, amounts) => left - cpuOf(amounts), machine.cores * 1_000);
  // In whole KiB, as the node says what it has.
  const capacity = Math.floor(machine.memoryBytes / 1_024) * 1_024;
  const memoryBytes = reserved.reduce((left, amounts) => left - memoryOf(amounts), capacity);
  if (cpuMilli <= 0 || memoryBytes <= 0) {
    const name = cpuMilli <= 0 ? 'CPU' : 'memory';
    throw new MachineError(
      `--cluster-reserved and --system-reserved leave no ${name} of this machine to pods; reserve less`,
    );
  }
  return { cpuMilli, memoryBytes };
}

export function limitsOfShare({ cpuMilli, memoryBytes }: NodeShare): CgroupLimits {
  return { cpuShares: sharesOf(cpuMilli), memoryBytes };
}

/** Limits of a group for which this was set aside; what was not named has none. */
export function limitsOfReserved(reserved: ResourceAmounts): CgroupLimits {
  const { cpu, memory } = reserved;
  return {
    ...(cpu === undefined ? {} : { cpuShares: sharesOf(cpuOf(reserved)) }),
    ...(memory === undefined ? {} : { memoryBytes: memoryOf(reserved) }),
  };
}
