import { durationMs } from '@keelson/core';
import type { EvictionConfig } from '../../base/config/agent-config.ts';
import { type Amount, parseAmount, parseThresholdAmount } from '../../base/config/eviction-amount.ts';
import { isSignal, type Signal } from '../../base/config/eviction-signals.ts';
import type { Threshold } from '../../base/config/eviction-threshold.ts';
import type { AgentOptions } from './option-table.ts';

const nothing: Amount = { count: 0 };

/** Pods that take more memory than is set aside for them are short of it, whatever the machine has left. */
const allocatable: Threshold = {
  signal: 'allocatableMemory.available',
  kind: 'hard',
  value: nothing,
  graceMs: 0,
  minReclaim: nothing,
};

/** What the options say about eviction; they have been checked. */
export function evictionConfig(values: AgentOptions): EvictionConfig {
  const reclaim = values['eviction-minimum-reclaim'];
  const periods = values['eviction-soft-grace-period'];
  const read = (signal: Signal, kind: Threshold['kind'], value: string): Threshold => ({
    signal,
    kind,
    value: parseThresholdAmount(value),
    graceMs: kind === 'soft' ? durationMs(periods.get(signal) ?? '0s') : 0,
    minReclaim: parseAmount(reclaim.get(signal) ?? '0'),
  });
  const ofOptions = (['hard', 'soft'] as const).flatMap((kind) =>
    [...values[`eviction-${kind}`]].flatMap(([signal, value]) => (isSignal(signal) ? [read(signal, kind, value)] : [])),
  );
  return {
    thresholds: values['enforce-node-allocatable'].includes('pods') ? [...ofOptions, allocatable] : ofOptions,
    maxPodGraceSeconds: values['eviction-max-pod-grace-period'],
    transitionMs: values['eviction-pressure-transition-period'],
    watchMemory: values['experimental-kernel-memcg-notification'],
    reservesThresholds: !values['experimental-allocatable-ignore-eviction'],
  };
}

/** Sentences about options that say something about thresholds which there are not. */
export function evictionWarnings(values: AgentOptions): string[] {
  const { 'eviction-hard': hard, 'eviction-soft': soft } = values;
  const idle = (
    name: 'eviction-soft-grace-period' | 'eviction-minimum-reclaim',
    known: (signal: string) => boolean,
    where: string,
  ) =>
    [...values[name].keys()]
      .filter((signal) => !known(signal))
      .map((signal) => `--${name}: ${signal} means nothing, since ${where}`);
  const lone: string[] = [];
  if (values['eviction-max-pod-grace-period'] !== 0 && soft.size === 0)
    lone.push('--eviction-max-pod-grace-period means nothing without --eviction-soft');
  if (
    values['experimental-kernel-memcg-notification'] &&
    !hard.has('memory.available') &&
    !soft.has('memory.available')
  )
    lone.push('--experimental-kernel-memcg-notification means nothing without a threshold of memory.available');
  return [
    ...lone,
    ...idle('eviction-soft-grace-period', (signal) => soft.has(signal), '--eviction-soft has no such threshold'),
    ...idle(
      'eviction-minimum-reclaim',
      (signal) => hard.has(signal) || soft.has(signal),
      'neither --eviction-hard nor --eviction-soft has such a threshold',
    ),
  ];
}
