import {
  formatRequirement,
  type LabelOperator,
  type LabelRequirement,
  type Labels,
  labelRequirement,
  meetsRequirement,
} from './label-requirement.ts';
import { parseLabelRequirements } from './label-selector-parser.ts';
import { SelectorError } from './selector-error.ts';

/** A condition on the labels of an object. */
export interface LabelSelector {
  /** True when every object matches. */
  readonly empty: boolean;
  /** All of them must be met. */
  readonly requirements: readonly LabelRequirement[];
  matches(labels: Labels | undefined): boolean;
  /** Canonical text: equal selectors have equal texts, and parsing it gives an equal selector. */
  toString(): string;
}

/** The JSON form of a selector, as the specs of kinds hold it. */
export interface LabelSelectorSpec {
  readonly matchLabels?: Labels | null;
  readonly matchExpressions?:
    | readonly { readonly key: string; readonly operator: string; readonly values?: readonly string[] | null }[]
    | null;
}

const noLabels: Labels = {};

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

class RequirementSelector implements LabelSelector {
  readonly requirements: readonly LabelRequirement[];
  readonly #text: string;

  constructor(requirements: readonly LabelRequirement[]) {
    const byText = new Map(requirements.map((requirement) => [formatRequirement(requirement), requirement]));
    const sorted = [...byText].sort(([a], [b]) => compareTexts(a, b));
    this.requirements = sorted.map(([, requirement]) => requirement);
    this.#text = sorted.map(([text]) => text).join(',');
  }

  get empty(): boolean {
    return this.requirements.length === 0;
  }

  matches(labels: Labels | undefined): boolean {
    const given = labels ?? noLabels;
    for (const requirement of this.requirements) if (!meetsRequirement(requirement, given)) return false;
    return true;
  }

  toString(): string {
    return this.#text;
  }
}

/** Matches every object. */
export const everythingSelector: LabelSelector = new RequirementSelector([]);

/** Matches no object; what a missing JSON selector means. It has no text of its own. */
export const nothingSelector: LabelSelector = {
  empty: false,
  requirements: [],
  matches: () => false,
  toString: () => '<nothing>',
};

/**
 * Parses the text form of a label selector, such as `app=web,tier in (a,b),!old`: see
 * docs/reference/api-rules.md#label-selectors.
 *
 * @throws SelectorError when the text is no selector, longer than 8 KiB or of more than 100 requirements.
 */
export function parseLabelSelector(text: string): LabelSelector {
  return text === '' ? everythingSelector : new RequirementSelector(parseLabelRequirements(text));
}

const jsonOperators: ReadonlySet<string> = new Set<LabelOperator>(['In', 'NotIn', 'Exists', 'DoesNotExist']);

function isJsonOperator(word: string): word is LabelOperator {
  return jsonOperators.has(word);
}

/**
 * The selector that a JSON form means: all of its labels and expressions. `{}` matches everything, a missing one
 * nothing.
 *
 * @throws SelectorError when an expression is none; validation (`labelSelectorErrors`) finds the same before.
 */
export function labelSelectorOf(spec: LabelSelectorSpec | null | undefined): LabelSelector {
  if (!spec) return nothingSelector;
  const requirements = Object.entries(spec.matchLabels ?? {}).map(([key, value]) =>
    labelRequirement(key, 'In', [value]),
  );
  for (const { key, operator, values } of spec.matchExpressions ?? []) {
    if (!isJsonOperator(operator))
      throw new SelectorError(`${JSON.stringify(operator)} is not a valid label selector operator`);
    requirements.push(labelRequirement(key, operator, values ?? []));
  }
  return requirements.length === 0 ? everythingSelector : new RequirementSelector(requirements);
}

/** The selector that asks for all of these labels, as services and old controllers select. */
export function labelSetSelector(labels: Labels): LabelSelector {
  return labelSelectorOf({ matchLabels: labels });
}
