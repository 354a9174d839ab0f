import { duration } from '@keelson/core/internal';
import { option } from './option.ts';
import { int32, mapStringString, thresholdMap } from './value-types.ts';

type Pairs = ReadonlyMap<string, string>;
const none = { shownDefault: 'none' };
const noPairs: Pairs = new Map();
const hardDefaults: Pairs = new Map([
  ['imagefs.available', '15%'],
  ['memory.available', '100Mi'],
  ['nodefs.available', '10%'],
  ['nodefs.inodesFree', '5%'],
]);

export const evictionOptions = [
  option(
    'eviction-hard',
    thresholdMap,
    hardDefaults,
    'Thresholds at which pods are evicted at once; empty disables them.',
  ),
  option('eviction-soft', thresholdMap, noPairs, 'Thresholds at which pods are evicted after a grace period.', none),
  option(
    'eviction-soft-grace-period',
    mapStringString,
    noPairs,
    'How long a soft threshold must be met before pods are evicted, e.g. memory.available=1m30s.',
    none,
  ),
  option(
    'eviction-minimum-reclaim',
    mapStringString,
    noPairs,
    'Minimum amount that is reclaimed under pressure, e.g. imagefs.available=2Gi.',
    none,
  ),
  option(
    'eviction-max-pod-grace-period',
    int32,
    0,
    'Maximum termination grace period in seconds of pods that a soft threshold evicts; negative uses that of the pod.',
    none,
  ),
  option(
    'eviction-pressure-transition-period',
    duration,
    300_000,
    'Minimum time before a pressure condition is cleared.',
  ),
] as const;
