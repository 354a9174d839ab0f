import {
  formatRequirement,
  type LabelOperator,
  type LabelRequirement,
  type Labels,
  labelRequirement,
  meetsRequirement,
} from './label-requirement.ts';
import { parseLabelRequirements } from './label-selector-parser.ts';
import { maxRequirements, maxSelectorLength, SelectorError } from './selector-error.ts';

/** A condition on the labels of an object. */
export interface LabelSelector {
  /** True when every object matches. */
  readonly empty: boolean;
  /** The conditions of the selector; an object matches when it meets all of them. */
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

/** One condition on one field: its text equals the value, or does not. */
export interface FieldRequirement {
  readonly field: string;
  readonly operator: '=' | '!=';
  readonly value: string;
}

/** A condition on selectable fields of an object. */
export interface FieldSelector {
  /** True when every object matches. */
  readonly empty: boolean;
  /** The conditions of the selector; an object matches when it meets all of them. */
  readonly requirements: readonly FieldRequirement[];
  /** `get` gives a field's text, '' for absent ones. */
  matches(get: (field: string) => string): boolean;
  /** Canonical text: equal selectors have equal texts, and parsing it gives an equal selector. */
  toString(): string;
}

/** The parts between commas; `\,` does not separate. */
function terms(text: string): string[] {
  const parts: string[] = [];
  let start = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === ',') {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  parts.push(text.slice(start));
  return parts.filter((part) => part !== '');
}

function unescaped(value: string): string {
  let plain = '';
  for (let at = 0; at < value.length; at += 1) {
    const character = value.charAt(at);
    if (character === '=' || character === ',') {
      throw new SelectorError(`invalid field selector: unescaped character in value: ${character}`);
    }
    if (character !== '\\') {
      plain += character;
      continue;
    }
    at += 1;
    const escaped = value.charAt(at);
    if (escaped !== '\\' && escaped !== ',' && escaped !== '=') {
      throw new SelectorError(`invalid field selector: invalid escape sequence: \\${escaped}`);
    }
    plain += escaped;
  }
  return plain;
}

function requirementOf(text: string, term: string): FieldRequirement {
  const parts = /!=|==?/.exec(term);
  if (!parts) throw new SelectorError(`invalid selector: '${text}'; can't understand '${term}'`);
  const value = unescaped(term.slice(parts.index + parts[0].length));
  return { field: term.slice(0, parts.index), operator: parts[0] === '!=' ? '!=' : '=', value };
}

function formatTerm({ field, operator, value }: FieldRequirement): string {
  return `${field}${operator}${value.replace(/[\\,=]/g, '\\$&')}`;
}

class RequirementFieldSelector implements FieldSelector {
  readonly requirements: readonly FieldRequirement[];
  readonly #text: string;

  constructor(requirements: readonly FieldRequirement[]) {
    const byText = new Map(requirements.map((requirement) => [formatTerm(requirement), requirement]));
    const texts = [...byText.keys()].sort();
    this.requirements = texts.flatMap((text) => byText.get(text) ?? []);
    this.#text = texts.join(',');
  }

  get empty(): boolean {
    return this.requirements.length === 0;
  }

  matches(get: (field: string) => string): boolean {
    for (const { field, operator, value } of this.requirements) {
      if ((get(field) === value) !== (operator === '=')) return false;
    }
    return true;
  }

  toString(): string {
    return this.#text;
  }
}

/** Matches every object. */
export const everyField: FieldSelector = new RequirementFieldSelector([]);

/** The selector of these requirements. */
export function fieldSelectorOf(requirements: readonly FieldRequirement[]): FieldSelector {
  return requirements.length === 0 ? everyField : new RequirementFieldSelector(requirements);
}

/**
 * Parses a field selector such as `metadata.name=a,status.phase!=Running`: see
 * docs/reference/api-rules.md#field-selectors. The caller checks whether the kind has the fields.
 *
 * @throws SelectorError when the text is no selector, longer than 8 KiB or of more than 100 requirements.
 */
export function parseFieldSelector(text: string): FieldSelector {
  if (text.length > maxSelectorLength) {
    throw new SelectorError(`invalid selector: it is longer than ${maxSelectorLength} characters`);
  }
  const parts = terms(text);
  if (parts.length > maxRequirements)
    throw new SelectorError(`invalid selector: it has more than ${maxRequirements} requirements`);
  const requirements = parts.map((part) => requirementOf(text, part));
  // `=` and `!=` alone name no field and require nothing, as in Kubernetes.
  return fieldSelectorOf(requirements.filter(({ field, value }) => field !== '' || value !== ''));
}
