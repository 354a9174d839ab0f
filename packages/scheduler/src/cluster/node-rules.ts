import type { coreV1, Taint } from '@keelson/kinds';

type Labels = Readonly<Record<string, string>>;

/** What rules about nodes are compared with. */
export interface NodeFacts {
  readonly name: string;
  readonly labels: Labels;
}

const integer = /^[+-]?\d{1,19}$/;

function meets(requirement: coreV1.NodeSelectorRequirement, value: string | undefined): boolean {
  const { operator, values = [] } = requirement;
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
    case 'Lt': {
      const [bound = ''] = values;
      if (value === undefined || !integer.test(value) || !integer.test(bound)) return false;
      return operator === 'Gt' ? BigInt(value) > BigInt(bound) : BigInt(value) < BigInt(bound);
    }
    default:
      return false;
  }
}

/** True when the node meets all conditions of the term. An empty term matches no node. */
export function matchesTerm(term: coreV1.NodeSelectorTerm, node: NodeFacts): boolean {
  const { matchExpressions = [], matchFields = [] } = term;
  if (matchExpressions.length === 0 && matchFields.length === 0) return false;
  for (const requirement of matchExpressions)
    if (!meets(requirement, Object.hasOwn(node.labels, requirement.key) ? node.labels[requirement.key] : undefined))
      return false;
  for (const requirement of matchFields)
    if (!meets(requirement, requirement.key === 'metadata.name' ? node.name : undefined)) return false;
  return true;
}

/** Labels and terms that a node must match; undefined when the pod has no such rules. */
export interface NodeRules {
  readonly labels: readonly (readonly [string, string])[];
  /** Alternatives; undefined: all nodes. */
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
  return rules.terms === undefined || rules.terms.some((term) => matchesTerm(term, node));
}

export function tolerates(toleration: coreV1.Toleration, taint: Taint): boolean {
  const { key = '', operator = '', value = '', effect = '' } = toleration;
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  if (operator === 'Exists') return true;
  return (operator === '' || operator === 'Equal') && key !== '' && value === (taint.value ?? '');
}

/** The first taint with one of the effects that no toleration covers. */
export function untoleratedTaint(
  taints: readonly Taint[],
  tolerations: readonly coreV1.Toleration[],
  effects: readonly string[],
): Taint | undefined {
  return taints.find(
    (taint) => effects.includes(taint.effect) && !tolerations.some((toleration) => tolerates(toleration, taint)),
  );
}

/** Effects that keep a pod from being assigned. */
export const hardEffects = ['NoSchedule', 'NoExecute'] as const;
