import { X509Certificate } from 'node:crypto';
import { isConditionTrue } from '@keelson/controller-kit';
import { addErrors, dns1035LabelErrors, dns1123SubdomainErrors, type FieldError, fieldError } from '@keelson/core';
import { type CustomResourceDefinition, type CustomResourceDefinitionVersion, checkClientConfig } from '@keelson/kinds';
import { apiApproval, approvalAnnotation } from './api-approval.ts';
import { checkVersions, type SchemaCheck } from './check-versions.ts';

type Spec = CustomResourceDefinition['spec'];

const reviewVersions = ['v1', 'v1beta1'];

/** Validates a new or changed definition. Source: `apiextensions-apiserver/pkg/apis/apiextensions/validation`. */
export function checkDefinition(
  definition: CustomResourceDefinition,
  old: CustomResourceDefinition | undefined,
  checkRules: SchemaCheck,
): FieldError[] {
  const { spec, status, metadata } = definition;
  const errors: FieldError[] = [];
  const required = `${spec.names.plural}.${spec.group}`;
  if (metadata?.name && metadata.name !== required && old === undefined)
    errors.push(fieldError.invalid('metadata.name', metadata.name, 'must be spec.names.plural+"."+spec.group'));
  addErrors(errors, checkSpec(spec, old, checkRules));
  addErrors(errors, checkNames(status?.acceptedNames ?? {}, 'status.acceptedNames'));
  addErrors(errors, checkStoredVersions(status?.storedVersions ?? [], spec.versions));
  addErrors(errors, checkApproval(definition, old));
  if (old !== undefined) addErrors(errors, immutableErrors(spec, old));
  return errors;
}

const immutable = 'field is immutable';

function immutableErrors(spec: Spec, { spec: before, status }: CustomResourceDefinition): FieldError[] {
  const established = isConditionTrue(status?.conditions, 'Established');
  const pairs: [field: string, value: string, old: string][] = [
    ...(established
      ? ([
          ['spec.scope', spec.scope, before.scope],
          ['spec.names.kind', spec.names.kind, before.names.kind],
        ] satisfies [string, string, string][])
      : []),
    ['spec.group', spec.group, before.group],
    ['spec.names.plural', spec.names.plural, before.names.plural],
  ];
  return pairs.flatMap(([field, value, old]) => (value === old ? [] : [fieldError.invalid(field, value, immutable)]));
}

function checkSpec(spec: Spec, old: CustomResourceDefinition | undefined, checkRules: SchemaCheck): FieldError[] {
  const errors: FieldError[] = [];
  const { group, scope, versions, names } = spec;
  if (group === '') errors.push(fieldError.required('spec.group'));
  else if (dns1123SubdomainErrors(group).length > 0)
    errors.push(fieldError.invalid('spec.group', group, dns1123SubdomainErrors(group).join(',')));
  else if (!group.includes('.'))
    errors.push(fieldError.invalid('spec.group', group, 'should be a domain with at least one dot'));
  if (scope === '') errors.push(fieldError.required('spec.scope'));
  else if (scope !== 'Cluster' && scope !== 'Namespaced')
    errors.push(fieldError.notSupported('spec.scope', scope, ['Cluster', 'Namespaced']));
  if (spec.preserveUnknownFields) {
    const detail =
      'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead';
    errors.push(fieldError.invalid('spec.preserveUnknownFields', true, detail));
  }
  addErrors(errors, checkVersions(versions, old?.spec.versions ?? [], checkRules));
  for (const name of ['plural', 'singular', 'kind', 'listKind'] as const)
    if (!names[name]) errors.push(fieldError.required(`spec.names.${name}`));
  addErrors(errors, checkNames(names, 'spec.names'));
  addErrors(errors, checkConversion(spec, old));
  return errors;
}

type Names = Partial<Spec['names']>;

function checkNames({ plural, singular, kind, listKind, shortNames, categories }: Names, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const check = (word: string, name: string | undefined, mixedCase = false) => {
    const found = name ? dns1035LabelErrors(mixedCase ? name.toLowerCase() : name) : [];
    if (found.length === 0) return;
    const prefix = mixedCase ? 'may have mixed case, but should otherwise match: ' : '';
    errors.push(fieldError.invalid(`${path}.${word}`, name, `${prefix}${found.join(',')}`));
  };
  check('plural', plural);
  check('singular', singular);
  check('kind', kind, true);
  check('listKind', listKind, true);
  for (const [i, name] of (shortNames ?? []).entries()) check(`shortNames[${i}]`, name);
  if (kind && kind === listKind)
    errors.push(fieldError.invalid(`${path}.listKind`, listKind, 'kind and listKind may not be the same'));
  for (const [i, name] of (categories ?? []).entries()) check(`categories[${i}]`, name);
  return errors;
}

function checkStoredVersions(
  stored: readonly string[],
  versions: readonly CustomResourceDefinitionVersion[],
): FieldError[] {
  const path = 'status.storedVersions';
  if (stored.length === 0) return [fieldError.invalid(path, stored, 'must have at least one stored version')];
  const errors: FieldError[] = [];
  for (const { name, storage } of versions) {
    if (storage && !stored.includes(name))
      errors.push(fieldError.invalid(path, stored, `must have the storage version ${name}`));
  }
  for (const [i, name] of stored.entries()) {
    if (versions.some((version) => version.name === name)) continue;
    const detail =
      `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage ` +
      `migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`;
    errors.push(fieldError.invalid(`${path}[${i}]`, name, detail));
  }
  return errors;
}

/** API groups of the Kubernetes community require an approval annotation. */
function checkApproval(definition: CustomResourceDefinition, old: CustomResourceDefinition | undefined): FieldError[] {
  const approval = apiApproval(definition);
  if (approval === undefined || approval.state === 'Approved' || approval.state === 'Unapproved') return [];
  const { state, message } = approval;
  if (old !== undefined && apiApproval(old)?.state === state) return [];
  const path = `metadata.annotations[${approvalAnnotation}]`;
  if (state === 'Missing') return [fieldError.required(path, message)];
  return [fieldError.invalid(path, definition.metadata?.annotations?.[approvalAnnotation], message)];
}

function checkConversion({ conversion }: Spec, old: CustomResourceDefinition | undefined): FieldError[] {
  const path = 'spec.conversion';
  if (conversion === undefined) return [];
  const { strategy, webhook } = conversion;
  if (strategy === '') return [fieldError.required(`${path}.strategy`)];
  if (strategy !== 'None' && strategy !== 'Webhook')
    return [fieldError.notSupported(`${path}.strategy`, strategy, ['None', 'Webhook'])];
  if (strategy === 'None') {
    if (webhook === undefined) return [];
    return [fieldError.forbidden(`${path}.webhook`, 'should not be set when strategy is not set to Webhook')];
  }
  const client = webhook?.clientConfig;
  const at = `${path}.webhookClientConfig`;
  if (client === undefined) return [fieldError.required(at, 'required when strategy is set to Webhook')];
  const errors: FieldError[] = [];
  checkClientConfig(client, at, errors);
  const established = isConditionTrue(old?.status?.conditions, 'Established');
  if (
    client.caBundle &&
    established &&
    !isBundle(client.caBundle) &&
    old?.spec.conversion?.webhook?.clientConfig?.caBundle !== client.caBundle
  )
    errors.push(
      fieldError.invalid(
        `${at}.caBundle`,
        client.caBundle,
        'unable to load root certificates: unable to parse bytes as PEM block',
      ),
    );
  errors.push(...reviewVersionErrors(webhook?.conversionReviewVersions ?? [], `${path}.conversionReviewVersions`));
  return errors;
}

function isBundle(base64: string): boolean {
  try {
    return new X509Certificate(Buffer.from(base64, 'base64')).subject !== '';
  } catch {
    return false;
  }
}

function reviewVersionErrors(versions: readonly string[], path: string): FieldError[] {
  if (versions.length === 0) return [fieldError.required(path)];
  const errors: FieldError[] = [];
  for (const [i, version] of versions.entries()) {
    if (versions.indexOf(version) < i) errors.push(fieldError.invalid(`${path}[${i}]`, version, 'duplicate version'));
    else
      for (const text of dns1035LabelErrors(version)) errors.push(fieldError.invalid(`${path}[${i}]`, version, text));
  }
  if (!versions.some((version) => reviewVersions.includes(version)))
    errors.push(fieldError.invalid(path, versions, `must include at least one of ${reviewVersions.join(', ')}`));
  return errors;
}
