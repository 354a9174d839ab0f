const label1123Source = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const subdomain1123Source = `${label1123Source}(\\.${label1123Source})*`;
const label1035Source = '[a-z]([-a-z0-9]*[a-z0-9])?';

const label1123 = new RegExp(`^${label1123Source}$`);
const label1035 = new RegExp(`^${label1035Source}$`);

const maxSubdomain = 253;
const maxLabel = 63;

/** How a rule reads in the details of a refused field: the rule in words, examples, the regular expression. */
export function ruleText(rule: string, examples: readonly string[], source: string): string {
  const shown = examples.map((example) => `'${example}'`).join(' or ');
  return `${rule} (e.g. ${shown}, regex used for validation is '${source}')`;
}

/** The error of a text longer than `max` characters; empty when it is not. */
export function lengthErrors(text: string, max: number): string[] {
  return text.length > max ? [`must be no more than ${max} characters`] : [];
}

const label1123Text = ruleText(
  "a lowercase RFC 1123 label takes lower case letters, digits and '-', and a letter or digit at both ends",
  ['my-name', '123-abc'],
  label1123Source,
);
const subdomain1123Text = ruleText(
  "a lowercase RFC 1123 subdomain takes lower case letters, digits, '-' and '.', and a letter or digit at both ends of each part",
  ['example.com'],
  subdomain1123Source,
);
const label1035Text = ruleText(
  "a DNS-1035 label takes lower case letters, digits and '-', a letter at its beginning and a letter or digit at its end",
  ['my-name', 'abc-123'],
  label1035Source,
);
/** A text of lower case letters, digits and inner dashes, at most 63 long. */
export function dns1123LabelErrors(text: string): string[] {
  const errors = lengthErrors(text, maxLabel);
  if (!label1123.test(text)) errors.push(label1123Text);
  return errors;
}

/** Labels joined by dots, at most 253 long in total; the parts have no limit of their own. */
export function dns1123SubdomainErrors(text: string): string[] {
  const errors = lengthErrors(text, maxSubdomain);
  // Most names are a single part, which need not be cut out.
  const sound = label1123.test(text) || text.split('.', maxSubdomain + 1).every((part) => label1123.test(part));
  if (!sound) errors.push(subdomain1123Text);
  return errors;
}

/** Like a DNS-1123 label, but it begins with a letter. */
export function dns1035LabelErrors(text: string): string[] {
  const errors = lengthErrors(text, maxLabel);
  if (!label1035.test(text)) errors.push(label1035Text);
  return errors;
}
