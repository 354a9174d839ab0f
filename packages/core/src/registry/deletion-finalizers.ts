import type { PropagationPolicy } from '../kind/strategy.ts';
import { foregroundFinalizer, orphanFinalizer } from '../meta/finalizers.ts';
import type { DeleteParameters } from './resource-service.ts';

function requestedPolicy(
  parameters: Pick<DeleteParameters, 'orphanDependents' | 'propagationPolicy'>,
): PropagationPolicy | undefined {
  if (parameters.propagationPolicy !== undefined) return parameters.propagationPolicy;
  if (parameters.orphanDependents === undefined) return undefined;
  return parameters.orphanDependents ? 'Orphan' : 'Background';
}

/**
 * The finalizers that an object has after a DELETE: see docs/reference/api-rules.md#propagation. Returns `existing`
 * itself when nothing changes.
 */
export function deletionFinalizers(
  existing: readonly string[],
  parameters: Pick<DeleteParameters, 'orphanDependents' | 'propagationPolicy'>,
  kindDefault: PropagationPolicy | 'none' = 'Background',
): readonly string[] {
  const collected = existing.includes(orphanFinalizer) || existing.includes(foregroundFinalizer);
  let policy: PropagationPolicy | 'none';
  if (kindDefault === 'none') policy = 'none';
  else {
    const requested = requestedPolicy(parameters);
    if (requested === undefined && collected) return existing;
    policy = requested ?? kindDefault;
  }
  const wanted = policy === 'Orphan' ? orphanFinalizer : policy === 'Foreground' ? foregroundFinalizer : undefined;
  if (wanted === undefined && !collected) return existing;
  const kept = existing.filter((finalizer) => finalizer !== orphanFinalizer && finalizer !== foregroundFinalizer);
  return wanted === undefined ? kept : [...kept, wanted];
}
