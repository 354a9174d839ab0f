import { type ControllerDefinition, type ObjectReader, relatedKind } from '@keelson/controller-kit';
import { isStatusError, labelSelectorOf, StatusReason } from '@keelson/core';
import { ClusterRole, type PolicyRule } from '@keelson/kinds';

/** Index of the cluster roles with an aggregation rule. */
const collecting = ({ aggregationRule }: ClusterRole) => (aggregationRule ? ['yes'] : []);

/** Sets the rules of every cluster role with an aggregation rule to those of the cluster roles that it selects. */
export const clusterRoleAggregation: ControllerDefinition<ClusterRole> = {
  name: 'clusterrole-aggregation-controller',
  kind: ClusterRole,
  // Only roles with an aggregation rule are compared, so a change of any other role is cheap.
  related: [
    relatedKind(ClusterRole, (role, before, read) =>
      read(ClusterRole)
        .by(collecting, 'yes')
        .filter((collector) => selects(collector, role) || (before !== undefined && selects(collector, before)))
        .map(({ metadata }) => metadata?.name ?? ''),
    ),
  ],
  reconcile: async (role, { read, client, key }) => {
    if (!role.aggregationRule) return;
    const rules = collectedBy(role, read(ClusterRole));
    if (JSON.stringify(rules) === JSON.stringify(role.rules ?? [])) return;
    await client
      .resource(ClusterRole)
      .patch(key, 'merge', { rules })
      .catch((error: unknown) => {
        if (!isStatusError(error, StatusReason.NotFound)) throw error;
      });
  },
};

function selects({ aggregationRule }: ClusterRole, { metadata }: ClusterRole): boolean {
  const selectors = aggregationRule?.clusterRoleSelectors ?? [];
  return selectors.some((entry) => labelSelectorOf(entry).matches(metadata?.labels));
}

/** The aggregated rules without duplicates, in the order of the selectors and of the role names. */
function collectedBy(role: ClusterRole, roles: ObjectReader<ClusterRole>): PolicyRule[] {
  const nameOf = ({ metadata }: ClusterRole) => metadata?.name ?? '';
  const collected = new Map<string, PolicyRule>();
  for (const entry of role.aggregationRule?.clusterRoleSelectors ?? []) {
    const selector = labelSelectorOf(entry);
    const others = roles
      .list()
      .filter((other) => nameOf(other) !== nameOf(role) && selector.matches(other.metadata?.labels))
      .sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
    for (const { rules = [] } of others) for (const rule of rules) collected.set(JSON.stringify(rule), rule);
  }
  return [...collected.values()];
}
