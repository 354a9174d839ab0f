const label1123Source = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const subdomain1123Source = `${label1123Source}(\\.${label1123Source})*`;
const label1035Source = '[a-z]([-a-z0-9]*[a-z0-9])?';

const label1123 = new RegExp(`^${label1123Source}$`);
const label1035 = new RegExp(`^${label1035Source}$`);

const maxSubdomain = 253;
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
export function lengthErrors(text: string, max: number): string[] {
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
