import { mapStringString, thresholdMap } from './list-types.ts';
import { option } from './option.ts';
import { duration, int32 } from './scalar-types.ts';

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
  option('eviction-hard', thresholdMap, hardDefaults, 'Thresholds at which pods are evicted; empty is never.'),
  option('eviction-soft', thresholdMap, noPairs, 'Thresholds at which pods are evicted after a while.', none),
  option(
    'eviction-soft-grace-period',
    mapStringString,
    noPairs,
    'How long a soft threshold must hold, e.g. memory.available=1m30s.',
    none,
  ),
  option(
    'eviction-minimum-reclaim',
    mapStringString,
    noPairs,
    'Least amount to win back under pressure, e.g. imagefs.available=2Gi.',
    none,
  ),
  option(
    'eviction-max-pod-grace-period',
    int32,
    0,
    'Most seconds a pod gets to end when a soft threshold is met; negative leaves it to the pod.',
    none,
  ),
  option('eviction-pressure-transition-period', duration, 300_000, 'Least time in a pressure condition.'),
] as const;
