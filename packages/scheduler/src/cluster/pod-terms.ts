import {
  type LabelSelector,
  type LabelSelectorSpec,
  labelSelectorOf,
  nothingSelector,
  SelectorError,
} from '@keelson/core';
import type { coreV1 } from '@keelson/kinds';

type Labels = Readonly<Record<string, string>>;

/** Labels of namespaces, by name. */
export type NamespaceLabels = (namespace: string) => Labels | undefined;

/** A set of pods: those of some namespaces whose labels match. */
export interface PodSet {
  /** Equal sets have equal keys. */
  readonly key: string;
  readonly selector: LabelSelector;
  readonly namespaces: ReadonlySet<string>;
  /** Selects further namespaces by their labels. */
  readonly namespaceSelector: LabelSelector | undefined;
}

/** A rule about other pods: which pods, and the node label whose equal values are one topology domain. */
export interface PodTerm extends PodSet {
  /** Equal terms have equal ids. */
  readonly id: string;
  readonly topologyKey: string;
  /** Weight of a preference; a negative weight avoids nodes with matching pods. Required terms do not use it. */
  readonly weight: number;
}

/** A rule about the distribution of pods over topology domains. */
export interface SpreadRule {
  readonly topologyKey: string;
  readonly maxSkew: number;
  readonly minDomains: number;
  readonly selector: LabelSelector;
  readonly honorsAffinity: boolean;
  readonly honorsTaints: boolean;
  readonly required: boolean;
}

export function matchesPod(set: PodSet, namespace: string, labels: Labels, namespaces: NamespaceLabels): boolean {
  const inNamespace =
    set.namespaces.has(namespace) ||
    (set.namespaceSelector?.matches(namespaces(namespace) ?? {}) === true && namespaces(namespace) !== undefined);
  return inNamespace && set.selector.matches(labels);
}

/** Invalid selectors match nothing; validation rejects them before. */
function selectorOf(spec: LabelSelectorSpec | undefined): LabelSelector {
  try {
    return labelSelectorOf(spec);
  } catch (error) {
    if (error instanceof SelectorError) return nothingSelector;
    throw error;
  }
}

function withKeys(
  spec: LabelSelectorSpec | undefined,
  labels: Labels,
  keys: readonly string[] = [],
  mismatched: readonly string[] = [],
): LabelSelectorSpec | undefined {
  if (spec === undefined || keys.length + mismatched.length === 0) return spec;
  // The API server merges the keys into the selector of a new pod, with the labels that the pod has then.
  const merged = new Set(spec.matchExpressions?.map(({ key, operator }) => `${operator} ${key}`));
  const expressions = (names: readonly string[], operator: string) =>
    names
      .filter((key) => labels[key] !== undefined && !merged.has(`${operator} ${key}`))
      .map((key) => ({ key, operator, values: [labels[key] as string] }));
  const added = [...expressions(keys, 'In'), ...expressions(mismatched, 'NotIn')];
  return { ...spec, matchExpressions: [...(spec.matchExpressions ?? []), ...added] };
}

export function podTermOf(term: coreV1.PodAffinityTerm, namespace: string, labels: Labels, weight = 0): PodTerm {
  const { namespaces = [], namespaceSelector: namespaceSpec, topologyKey } = term;
  const selector = selectorOf(withKeys(term.labelSelector, labels, term.matchLabelKeys, term.mismatchLabelKeys));
  const own = namespaces.length === 0 && namespaceSpec === undefined ? [namespace] : [...namespaces].sort();
  const namespaceSelector = namespaceSpec && selectorOf(namespaceSpec);
  const key = JSON.stringify([own, namespaceSelector?.toString(), selector.toString()]);
  const id = JSON.stringify([key, topologyKey, weight]);
  return { id, key, selector, namespaces: new Set(own), namespaceSelector, topologyKey, weight };
}

export function spreadRuleOf(rule: coreV1.TopologySpreadConstraint, labels: Labels): SpreadRule {
  return {
    topologyKey: rule.topologyKey,
    maxSkew: rule.maxSkew,
    minDomains: rule.minDomains ?? 1,
    selector: selectorOf(withKeys(rule.labelSelector, labels, rule.matchLabelKeys)),
    honorsAffinity: rule.nodeAffinityPolicy !== 'Ignore',
    honorsTaints: rule.nodeTaintsPolicy === 'Honor',
    required: rule.whenUnsatisfiable !== 'ScheduleAnyway',
  };
}
