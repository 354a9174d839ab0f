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
 *
 * @param undiscovered API versions whose resources are not known
 */
export function terminationConditions(emptied: Emptied, undiscovered: readonly string[]): TerminationCondition[] {
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
  const unknown = listed(undiscovered.map((version) => `${version}: stale GroupVersion discovery: ${version}`));
  const failures = listed(emptied.failures);
  const content = listed(emptied.remaining.map(({ resource, count }) => `${resource} has ${count} resource instances`));
  const finalizers = new Map<string, number>();
  for (const [name, count] of emptied.remaining.flatMap((row) => Object.entries(row.finalizers)))
    finalizers.set(name, (finalizers.get(name) ?? 0) + count);
  const held = listed([...finalizers].map(([name, count]) => `${name} in ${count} resource instances`));
  const count = undiscovered.length;
  return [
    condition(
      'NamespaceDeletionDiscoveryFailure',
      unknown === ''
        ? ''
        : `Discovery failed for some groups, ${count} failing: unable to retrieve the complete list of server APIs: ${unknown}`,
      ['DiscoveryFailed', 'ResourcesDiscovered'],
      'All resources successfully discovered',
    ),
    // Versions are never invalid here. Clients of Kubernetes expect all conditions.
    condition(
      'NamespaceDeletionGroupVersionParsingFailure',
      '',
      ['GroupVersionParsingFailed', 'ParsedGroupVersions'],
      'All legacy kube types successfully parsed',
    ),
    condition(
      'NamespaceDeletionContentFailure',
      failures === '' ? '' : `Failed to delete all resource types, ${emptied.failures.length} remaining: ${failures}`,
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

/** One text for all entries, which does not depend on their order, so that it changes only with them. */
function listed(entries: readonly string[]): string {
  return [...entries].sort().join(', ');
}
