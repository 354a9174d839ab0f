import type { PodStatus } from '@keelson/kinds';
import { sameValue } from '../../base/same-value.ts';

/** Lists that a strategic merge patch would merge by key, and so would never shrink. */
const replaced = new Set(['podIPs', 'hostIPs']);
/** Fields that the agent owns; it does not revert changes of other fields. */
const own: readonly (keyof PodStatus)[] = [
  'phase',
  'conditions',
  'message',
  'reason',
  'hostIP',
  'hostIPs',
  'podIP',
  'podIPs',
  'startTime',
  'initContainerStatuses',
  'containerStatuses',
  'ephemeralContainerStatuses',
  'qosClass',
];

/**
 * The strategic merge patch that changes the agent's fields of `old` to those of `next`; undefined when they are equal.
 */
export function statusPatch(old: PodStatus, next: PodStatus): Record<string, unknown> | undefined {
  const patch: Record<string, unknown> = {};
  for (const key of own) {
    const value = next[key];
    if (key === 'conditions') {
      const changed = (next.conditions ?? []).filter(
        (condition) =>
          !sameValue(
            condition,
            old.conditions?.find(({ type }) => type === condition.type),
          ),
      );
      if (changed.length > 0)
        patch['conditions'] = changed.map((condition) => ({ reason: null, message: null, ...condition }));
    } else if (!sameValue(old[key], value)) {
      if (value === undefined) patch[key] = null;
      else patch[key] = replaced.has(key) && Array.isArray(value) ? [...value, { $patch: 'replace' }] : value;
    }
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}
