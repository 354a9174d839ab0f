import { quantityValue } from '@keelson/core';
import type { ResourceAmounts } from '../../base/config/agent-config.ts';
import { amountOf, amountText } from '../../base/config/eviction-amount.ts';
import type { Threshold } from '../../base/config/eviction-threshold.ts';

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
