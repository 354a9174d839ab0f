import { type ControllerDefinition, type ObjectReader, relatedKind } from '@keelson/controller-kit';
import { isStatusError, labelSelectorOf, StatusReason } from '@keelson/core';
import { ClusterRole, type PolicyRule } from '@keelson/kinds';

/** Index of the roles that collect rules. */
const collecting = ({ aggregationRule }: ClusterRole) => (aggregationRule ? ['yes'] : []);

/** Sets the rules of every cluster role with an aggregation rule to those of the cluster roles that it selects. */
export const clusterRoleAggregation: ControllerDefinition<ClusterRole> = {
  name: 'clusterrole-aggregation-controller',
  kind: ClusterRole,
  // Any change of a role may concern every role that collects rules; the queue combines bursts.
  related: [
    relatedKind(ClusterRole, (_role, _before, read) =>
      read(ClusterRole)
        .by(collecting, 'yes')
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

/** The rules in the order of selectors and names, each once. */
function collectedBy(role: ClusterRole, roles: ObjectReader<ClusterRole>): PolicyRule[] {
  const nameOf = ({ metadata }: ClusterRole) => metadata?.name ?? '';
  const sorted = roles.list().sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const collected = new Map<string, PolicyRule>();
  for (const entry of role.aggregationRule?.clusterRoleSelectors ?? []) {
    const selector = labelSelectorOf(entry);
    for (const other of sorted) {
      if (nameOf(other) === nameOf(role) || !selector.matches(other.metadata?.labels)) continue;
      for (const rule of other.rules ?? []) collected.set(JSON.stringify(rule), rule);
    }
  }
  return [...collected.values()];
}
