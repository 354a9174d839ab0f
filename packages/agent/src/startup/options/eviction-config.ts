import { durationMs } from '@keelson/core';
import type { EvictionConfig } from '../../base/config/agent-config.ts';
import { type Amount, parseAmount, parseThresholdAmount } from '../../base/config/eviction-amount.ts';
import { isSignal, type Signal } from '../../base/config/eviction-signals.ts';
import type { Threshold } from '../../base/config/eviction-threshold.ts';
import type { AgentOptions } from './option-table.ts';

const nothing: Amount = { count: 0 };

/** Pods are evicted when they use all allocatable memory, even when the machine has free memory. */
const allocatable: Threshold = {
  signal: 'allocatableMemory.available',
  kind: 'hard',
  value: nothing,
  graceMs: 0,
  minReclaim: nothing,
};

/** The eviction configuration of options that have been checked. */
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

/** Warnings about options that refer to thresholds that are not configured. */
export function evictionWarnings(values: AgentOptions): string[] {
  const { 'eviction-hard': hard, 'eviction-soft': soft } = values;
  const withoutThreshold = (
    name: 'eviction-soft-grace-period' | 'eviction-minimum-reclaim',
    hasThreshold: (signal: string) => boolean,
    reason: string,
  ) =>
    [...values[name].keys()]
      .filter((signal) => !hasThreshold(signal))
      .map((signal) => `--${name}: ${signal} has no effect because ${reason}`);
  const warnings: string[] = [];
  if (values['eviction-max-pod-grace-period'] !== 0 && soft.size === 0)
    warnings.push('--eviction-max-pod-grace-period has no effect without --eviction-soft');
  if (
    values['experimental-kernel-memcg-notification'] &&
    !hard.has('memory.available') &&
    !soft.has('memory.available')
  )
    warnings.push('--experimental-kernel-memcg-notification has no effect without a threshold of memory.available');
  return [
    ...warnings,
    ...withoutThreshold(
      'eviction-soft-grace-period',
      (signal) => soft.has(signal),
      '--eviction-soft has no such threshold',
    ),
    ...withoutThreshold(
      'eviction-minimum-reclaim',
      (signal) => hard.has(signal) || soft.has(signal),
      'neither --eviction-hard nor --eviction-soft has such a threshold',
    ),
  ];
}
