import { dns1123LabelErrors, dns1123SubdomainErrors, fieldError } from '@keelson/core';
import type { Errors } from '../../validation/checks.ts';
import { checkText } from '../../validation/checks.ts';

const maxDomain = 253;
/** Maximum length of a signer name: the domain, a slash, a namespace, a dot and a name. */
const maxName = maxDomain + 1 + 253 + 1 + 63;
const legacy = 'kubernetes.io/legacy-unknown';

/** Validates a signer name: a domain of at least two labels, a slash, and DNS names separated by dots. */
export function checkSignerName(name: string, path: string, errors: Errors): void {
  if (!checkText(name, path, errors)) return;
  const invalid = (value: string, detail: string) => errors.push(fieldError.invalid(path, value, detail));
  if (name === legacy) {
    invalid(name, 'the legacy signerName is not allowed via this API version');
    return;
  }
  const [domain = '', rest, ...more] = name.split('/');
  if (rest === undefined || more.length > 0) {
    invalid(name, "must be a fully qualified domain and path of the form 'example.com/signer-name'");
    return;
  }
  if (domain.length > maxDomain) errors.push(fieldError.tooLong(path, maxDomain));
  const labels = domain.split('.');
  for (const label of labels) {
    for (const detail of dns1123LabelErrors(label))
      invalid(domain, `validating label ${JSON.stringify(label)}: ${detail}`);
  }
  if (labels.length < 2) invalid(domain, 'should be a domain with at least two segments separated by dots');
  for (const label of rest.split('.')) {
    for (const detail of dns1123SubdomainErrors(label))
      invalid(rest, `validating label ${JSON.stringify(label)}: ${detail}`);
  }
  if (name.length > maxName) errors.push(fieldError.tooLong(path, maxName));
}
