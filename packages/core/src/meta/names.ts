import { dns1035LabelErrors, dns1123LabelErrors, dns1123SubdomainErrors, lengthErrors, ruleText } from './dns-names.ts';

const qualifiedSource = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const labelValueSource = `(${qualifiedSource})?`;
/** The same language as the published expression, without its ambiguity. */
const qualifiedName = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const maxLabel = 63;
/** Names are part of storage keys and paths; no rule allows longer ones. */
const maxPathSegment = 253;

const qualifiedRule = ruleText(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  ['MyName', 'my.name', '123-abc'],
  qualifiedSource,
);
const labelValueText = ruleText(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and " +
    'end with an alphanumeric character',
  ['MyValue', 'my_value', '12345'],
  labelValueSource,
);

/** Rule for the name of an object: see docs/reference/api-rules.md#names. */
export type NameRule = 'dns1123Subdomain' | 'dns1123Label' | 'dns1035Label' | 'pathSegment';

/** Violations of the rule for one segment of a URL path. The rule applies to the names of all objects. */
export function pathSegmentErrors(text: string): string[] {
  if (text === '.' || text === '..') return [`may not be '${text}'`];
  const errors: string[] = [];
  if (text.includes('/')) errors.push("may not contain '/'");
  if (text.includes('%')) errors.push("may not contain '%'");
  return errors;
}

const rules: Readonly<Record<NameRule, (name: string) => string[]>> = {
  dns1123Subdomain: dns1123SubdomainErrors,
  dns1123Label: dns1123LabelErrors,
  dns1035Label: dns1035LabelErrors,
  pathSegment: () => [],
};

/** Violations of a name rule by the name of an object. */
export function nameErrors(rule: NameRule, name: string): string[] {
  const errors = [...pathSegmentErrors(name), ...rules[rule](name)];
  if (rule === 'pathSegment' && name.length > maxPathSegment)
    errors.push(`must be no more than ${maxPathSegment} characters`);
  return errors;
}

/** Violations of a name rule by `generateName`: as {@link nameErrors}, but the prefix may end with `-`. */
export function namePrefixErrors(rule: NameRule, prefix: string): string[] {
  const end = prefix.length > 1 && prefix.endsWith('-') ? `${prefix.slice(0, -1)}a` : prefix;
  return nameErrors(rule, end);
}

/**
 * Violations of the rule for qualified names, `[prefix/]name` with a DNS subdomain as prefix: label keys, annotation
 * keys, finalizers, condition types.
 */
export function qualifiedNameErrors(text: string): string[] {
  const slash = text.indexOf('/');
  const prefix = slash < 0 ? undefined : text.slice(0, slash);
  const name = text.slice(slash + 1);
  if (name.includes('/')) {
    return [
      `a qualified name ${qualifiedRule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const errors: string[] = [];
  if (prefix === '') errors.push('prefix part must be non-empty');
  else if (prefix !== undefined) errors.push(...dns1123SubdomainErrors(prefix).map((error) => `prefix part ${error}`));
  if (name === '') errors.push('name part must be non-empty');
  else if (name.length > maxLabel) errors.push(`name part must be no more than ${maxLabel} characters`);
  if (!qualifiedName.test(name)) errors.push(`name part ${qualifiedRule}`);
  return errors;
}

/** Violations of the rule for label keys, which is the rule for qualified names. */
export function labelKeyErrors(key: string): string[] {
  return qualifiedNameErrors(key);
}

/** Violations of the rule for label values: empty, or at most 63 characters that form the name part of a key. */
export function labelValueErrors(text: string): string[] {
  const errors = lengthErrors(text, maxLabel);
  if (text !== '' && !qualifiedName.test(text)) errors.push(labelValueText);
  return errors;
}
