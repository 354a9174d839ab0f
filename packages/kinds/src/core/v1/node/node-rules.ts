import type { NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration } from '../schema/index.ts';

/** The properties of a node that rules about nodes examine. */
export interface NodeFacts {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

const integer = /^[+-]?\d{1,19}$/;

function meets(requirement: NodeSelectorRequirement, value: string | undefined): boolean {
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
export function matchesNodeTerm(term: NodeSelectorTerm, node: NodeFacts): boolean {
  const { matchExpressions = [], matchFields = [] } = term;
  if (matchExpressions.length === 0 && matchFields.length === 0) return false;
  for (const requirement of matchExpressions)
    if (!meets(requirement, Object.hasOwn(node.labels, requirement.key) ? node.labels[requirement.key] : undefined))
      return false;
  for (const requirement of matchFields)
    if (!meets(requirement, requirement.key === 'metadata.name' ? node.name : undefined)) return false;
  return true;
}

/** True when the toleration covers the taint. */
export function tolerates(toleration: Toleration, taint: Taint): boolean {
  const { key = '', operator = '', value = '', effect = '' } = toleration;
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  if (operator === 'Exists') return true;
  return (operator === '' || operator === 'Equal') && key !== '' && value === (taint.value ?? '');
}

/** The first taint with one of the effects that no toleration covers. */
export function untoleratedTaint(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
  effects: readonly string[],
): Taint | undefined {
  return taints.find(
    (taint) => effects.includes(taint.effect) && !tolerations.some((toleration) => tolerates(toleration, taint)),
  );
}
