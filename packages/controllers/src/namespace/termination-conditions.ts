import type { Emptied } from './empty-namespace.ts';

/** A condition of a namespace. */
export interface TerminationCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

/**
 * The conditions that state what the deletion of a namespace waits for: see
 * docs/reference/api-rules.md#namespace-life-cycle.
 */
export function terminationConditions(emptied: Emptied): TerminationCondition[] {
  const condition = (
    type: string,
    found: string,
    reasons: readonly [present: string, absent: string],
    absent: string,
  ): TerminationCondition => ({
    type,
    status: found === '' ? 'False' : 'True',
    reason: found === '' ? reasons[1] : reasons[0],
    message: found === '' ? absent : found,
  });
  const failures = emptied.failures.map(({ resource, message }) => `${resource}: ${message}`).join('; ');
  const content = emptied.remaining
    .map(({ resource, count }) => `${resource} has ${count} resource instances`)
    .join(', ');
  const finalizers = new Map<string, number>();
  for (const [name, count] of emptied.remaining.flatMap((row) => Object.entries(row.finalizers)))
    finalizers.set(name, (finalizers.get(name) ?? 0) + count);
  const held = [...finalizers].map(([name, count]) => `${name} in ${count} resource instances`).join(', ');
  return [
    condition(
      'NamespaceDeletionContentFailure',
      failures,
      ['ContentDeletionFailed', 'ContentDeleted'],
      'All content successfully deleted, may be waiting on finalization',
    ),
    condition(
      'NamespaceContentRemaining',
      content === '' ? '' : `Some resources are remaining: ${content}`,
      ['SomeResourcesRemain', 'ContentRemoved'],
      'All content successfully removed',
    ),
    condition(
      'NamespaceFinalizersRemaining',
      held === '' ? '' : `Some content in the namespace has finalizers remaining: ${held}`,
      ['SomeFinalizersRemain', 'ContentHasNoFinalizers'],
      'All content-preserving finalizers finished',
    ),
  ];
}
