import { type coreV1, matchesNodeTerm, type NodeFacts } from '@keelson/kinds';

export { matchesNodeTerm as matchesTerm, tolerates, untoleratedTaint } from '@keelson/kinds';
export type { NodeFacts };

type Labels = Readonly<Record<string, string>>;

/** Labels and terms that a node must match; undefined when the pod has no such rules. */
export interface NodeRules {
  readonly labels: readonly (readonly [string, string])[];
  /** Terms of which a node must match at least one; undefined: every node matches. */
  readonly terms: readonly coreV1.NodeSelectorTerm[] | undefined;
  /** The only nodes that can match, when every alternative names nodes. */
  readonly names: ReadonlySet<string> | undefined;
}

export function nodeRulesOf(spec: {
  readonly nodeSelector?: Labels;
  readonly affinity?: coreV1.Affinity;
}): NodeRules | undefined {
  const labels = Object.entries(spec.nodeSelector ?? {});
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  if (labels.length === 0 && terms === undefined) return undefined;
  return { labels, terms, names: terms && namesOf(terms) };
}

function namesOf(terms: readonly coreV1.NodeSelectorTerm[]): ReadonlySet<string> | undefined {
  const all = new Set<string>();
  for (const { matchFields = [] } of terms) {
    const lists = matchFields.filter(({ key, operator }) => key === 'metadata.name' && operator === 'In');
    const [first, ...others] = lists.map(({ values = [] }) => values);
    if (first === undefined) return undefined;
    for (const name of first) if (others.every((list) => list.includes(name))) all.add(name);
  }
  return all;
}

export function matchesNodeRules(rules: NodeRules | undefined, node: NodeFacts): boolean {
  if (rules === undefined) return true;
  for (const [key, value] of rules.labels) if (node.labels[key] !== value) return false;
  return rules.terms === undefined || rules.terms.some((term) => matchesNodeTerm(term, node));
}

/** Effects of taints that keep a pod from being assigned to a node. */
export const hardEffects = ['NoSchedule', 'NoExecute'] as const;
