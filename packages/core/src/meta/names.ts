import { addErrors, type FieldError, fieldError, isFull } from './field-error.ts';
import type { Labels } from './label-requirement.ts';
import type { LabelSelectorSpec } from './selectors.ts';

const label1123Source = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const subdomain1123Source = `${label1123Source}(\\.${label1123Source})*`;
const label1035Source = '[a-z]([-a-z0-9]*[a-z0-9])?';

const label1123 = new RegExp(`^${label1123Source}$`);
const label1035 = new RegExp(`^${label1035Source}$`);

const maxSubdomain = 253;
/** Maximum length of a DNS label, of a label value and of the name part of a qualified name. */
const maxLabel = 63;

/**
 * The detail of a rejected field: the rule, examples and the regular expression. Spaces and commas are exactly those
 * of Kubernetes (`e.g. 'a',  or 'b', regex`), because clients and users compare these texts.
 */
export function ruleText(rule: string, examples: readonly string[], source: string): string {
  const shown = examples.map((example) => `'${example}', `).join(' or ');
  return `${rule} (e.g. ${shown}regex used for validation is '${source}')`;
}

/** One error when the text is longer than `max` characters, otherwise none. */
function lengthErrors(text: string, max: number): string[] {
  return text.length > max ? [`must be no more than ${max} characters`] : [];
}

const label1123Text = ruleText(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with " +
    'an alphanumeric character',
  ['my-name', '123-abc'],
  label1123Source,
);
const subdomain1123Text = ruleText(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and " +
    'end with an alphanumeric character',
  ['example.com'],
  subdomain1123Source,
);
const label1035Text = ruleText(
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, " +
    'and end with an alphanumeric character',
  ['my-name', 'abc-123'],
  label1035Source,
);

/** Violations of the rule for DNS-1123 labels: lower case letters, digits and inner dashes, at most 63 characters. */
export function dns1123LabelErrors(text: string): string[] {
  const errors = lengthErrors(text, maxLabel);
  if (!label1123.test(text)) errors.push(isSubdomain1123(text) ? 'must not contain dots' : label1123Text);
  return errors;
}

function isSubdomain1123(text: string): boolean {
  // Most names are a single label, which needs no splitting. The limit bounds the work for very long texts.
  return label1123.test(text) || text.split('.', maxSubdomain + 1).every((part) => label1123.test(part));
}

/** Violations of the rule for DNS-1123 subdomains: labels joined by dots, at most 253 characters in total. */
export function dns1123SubdomainErrors(text: string): string[] {
  const errors = lengthErrors(text, maxSubdomain);
  if (!isSubdomain1123(text)) errors.push(subdomain1123Text);
  return errors;
}

/** Violations of the rule for DNS-1035 labels: a DNS-1123 label that starts with a letter. */
export function dns1035LabelErrors(text: string): string[] {
  const errors = lengthErrors(text, maxLabel);
  if (!label1035.test(text)) errors.push(label1035Text);
  return errors;
}

const qualifiedSource = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const labelValueSource = `(${qualifiedSource})?`;
/** Matches the same texts as the published expression, but without backtracking. */
const qualifiedName = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
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

/** Valid qualified names that were checked before: the keys of labels and annotations are few and repeat. */
const knownNames = new Set<string>();
const maxKnownNames = 1_000;

/**
 * Violations of the rule for qualified names, `[prefix/]name` with a DNS subdomain as prefix: label keys, annotation
 * keys, finalizers, condition types.
 */
export function qualifiedNameErrors(text: string): string[] {
  if (knownNames.has(text)) return [];
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
  if (errors.length === 0) {
    if (knownNames.size >= maxKnownNames) knownNames.clear();
    // A copy: the text may be a part of a long one, which would be kept with it.
    knownNames.add(Buffer.from(text, 'latin1').toString('latin1'));
  }
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

const configMapKeySource = '[-._a-zA-Z0-9]+';
const configMapKey = new RegExp(`^${configMapKeySource}$`);
const envVarName = /^[\x20-\x3c\x3e-\x7e]+$/;
const portNameCharacters = /^[-a-z0-9]+$/;
const maxConfigMapKey = 253;
const maxPortName = 15;

/** Names with a special meaning in paths, and names that start like `..`. */
function directoryErrors(text: string): string[] {
  if (text === '.' || text === '..') return [`must not be '${text}'`];
  return text.startsWith('..') ? ["must not start with '..'"] : [];
}

/** Violations of the rule for port names of containers and services. */
export function portNameErrors(text: string): string[] {
  const errors = lengthErrors(text, maxPortName);
  if (!portNameCharacters.test(text)) {
    errors.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)');
  }
  if (!/[a-z]/.test(text)) errors.push('must contain at least one letter (a-z)');
  if (text.includes('--')) errors.push('must not contain consecutive hyphens');
  if (text.startsWith('-') || text.endsWith('-')) errors.push('must not begin or end with a hyphen');
  return errors;
}

/** Violations of the rule for keys of ConfigMaps and Secrets, which become file names. */
export function configMapKeyErrors(text: string): string[] {
  const errors = lengthErrors(text, maxConfigMapKey);
  if (!configMapKey.test(text)) {
    errors.push(
      ruleText(
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
        ['key.name', 'KEY_NAME', 'key-name'],
        configMapKeySource,
      ),
    );
  }
  return [...errors, ...directoryErrors(text)];
}

/** Violations of the rule for names of environment variables, which is that of Kubernetes from 1.34 on. */
export function envVarNameErrors(text: string): string[] {
  if (text === '') return ['environment variable name must be non-empty'];
  if (envVarName.test(text)) return [];
  return ["a valid environment variable name must consist only of printable ASCII characters other than '='"];
}

/** What is wrong with a map of labels that stands at `path`. */
export function labelsErrors(labels: Labels | null | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [key, value] of Object.entries(labels ?? {})) {
    if (isFull(errors)) break;
    for (const detail of labelKeyErrors(key)) errors.push(fieldError.invalid(path, key, detail));
    for (const detail of labelValueErrors(value)) errors.push(fieldError.invalid(path, value, detail));
  }
  return errors;
}

type Expression = NonNullable<LabelSelectorSpec['matchExpressions']>[number];

/**
 * Adds what is wrong with the expression of a label selector that stands at `path`, or with that of a node selector,
 * which also has the operators `Gt` and `Lt` and may have any values where they are a preference.
 */
export function checkExpression(
  expression: Expression,
  path: string,
  errors: FieldError[],
  { ofNodes = false, anyValues = false }: { readonly ofNodes?: boolean; readonly anyValues?: boolean } = {},
): void {
  const values = expression.values ?? [];
  switch (expression.operator) {
    case 'In':
    case 'NotIn':
      if (values.length === 0) {
        errors.push(fieldError.required(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
      }
      break;
    case 'Exists':
    case 'DoesNotExist':
      if (values.length > 0) {
        errors.push(
          fieldError.forbidden(`${path}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
        );
      }
      break;
    case 'Gt':
    case 'Lt':
      if (!ofNodes) {
        errors.push(fieldError.invalid(`${path}.operator`, expression.operator, 'not a valid selector operator'));
      } else if (values.length !== 1) {
        errors.push(
          fieldError.required(`${path}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'"),
        );
      }
      break;
    default:
      errors.push(fieldError.invalid(`${path}.operator`, expression.operator, 'not a valid selector operator'));
  }
  for (const detail of labelKeyErrors(expression.key))
    errors.push(fieldError.invalid(`${path}.key`, expression.key, detail));
  if (anyValues) return;
  for (const [index, value] of values.entries()) {
    if (isFull(errors)) return;
    for (const detail of labelValueErrors(value))
      errors.push(fieldError.invalid(`${path}.values[${index}]`, value, detail));
  }
}

/**
 * What is wrong with the JSON form of a label selector that stands at `path`. A selector without errors can be
 * compiled.
 */
export function labelSelectorErrors(spec: LabelSelectorSpec | null | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  addErrors(errors, labelsErrors(spec?.matchLabels, `${path}.matchLabels`));
  for (const [index, expression] of (spec?.matchExpressions ?? []).entries()) {
    if (isFull(errors)) break;
    checkExpression(expression, `${path}.matchExpressions[${index}]`, errors);
  }
  return errors;
}
