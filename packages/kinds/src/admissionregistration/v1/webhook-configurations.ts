import {
  type Column,
  defineKind,
  dns1035LabelErrors,
  dns1123SubdomainErrors,
  type FieldError,
  fieldError,
  type KindDefinition,
  portNumberErrors,
} from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import {
  checkLabelSelector,
  checkOneOf,
  checkText,
  checkUnique,
  type Errors,
  newErrors,
  pushInvalid,
} from '../../validation/checks.ts';
import { checkMatchConditions, checkRule, defaultSelection } from './check-rules.ts';
import {
  type MutatingWebhook,
  MutatingWebhookConfigurationSchema,
  type MutatingWebhookConfiguration as MutatingWebhookConfigurationType,
  type ServiceReference,
  type ValidatingWebhook,
  ValidatingWebhookConfigurationSchema,
  type ValidatingWebhookConfiguration as ValidatingWebhookConfigurationType,
  type WebhookClientConfig,
} from './schema/webhooks.ts';

type Configuration = ValidatingWebhookConfigurationType | MutatingWebhookConfigurationType;
type Webhook = ValidatingWebhook & Pick<MutatingWebhook, 'reinvocationPolicy'>;

const reviewVersions = ['v1', 'v1beta1'];
const harmless = ['None', 'NoneOnDryRun'];
const longestTimeout = 30;

const columns: readonly Column<Configuration>[] = [
  nameColumn(),
  column('Webhooks', 'integer', 'Number of webhooks.', ({ webhooks }) => webhooks?.length ?? 0),
  ageColumn,
];

/** Webhooks that accept or deny requests. */
export const ValidatingWebhookConfiguration: KindDefinition<ValidatingWebhookConfigurationType> = defineKind({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingWebhookConfiguration',
  scope: 'Cluster',
  names: { categories: ['api-extensions'] },
  schema: ValidatingWebhookConfigurationSchema,
  strategy: {
    generation: 'spec',
    allowUnconditionalUpdate: false,
    default({ webhooks = [] }) {
      for (const webhook of webhooks) setDefaults(webhook);
    },
    validate: checkConfiguration,
  },
  columns,
});
export type ValidatingWebhookConfiguration = ValidatingWebhookConfigurationType;

/** Webhooks that may change objects. */
export const MutatingWebhookConfiguration: KindDefinition<MutatingWebhookConfigurationType> = defineKind({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'MutatingWebhookConfiguration',
  scope: 'Cluster',
  names: { categories: ['api-extensions'] },
  schema: MutatingWebhookConfigurationSchema,
  strategy: {
    generation: 'spec',
    allowUnconditionalUpdate: false,
    default({ webhooks = [] }) {
      for (const webhook of webhooks) {
        setDefaults(webhook);
        webhook.reinvocationPolicy ??= 'Never';
      }
    },
    validate: checkConfiguration,
  },
  columns,
});
export type MutatingWebhookConfiguration = MutatingWebhookConfigurationType;

function setDefaults(webhook: Webhook): void {
  webhook.failurePolicy ??= 'Fail';
  webhook.timeoutSeconds ??= 10;
  defaultSelection(webhook, webhook.rules ?? []);
  if (webhook.clientConfig.service) webhook.clientConfig.service.port ??= 443;
}

function checkConfiguration({ webhooks = [] }: Configuration): FieldError[] {
  const errors = newErrors();
  const names = new Set<string>();
  for (const [i, webhook] of webhooks.entries()) {
    const path = `webhooks[${i}]`;
    checkWebhook(webhook, path, errors);
    checkReviewVersions(webhook.admissionReviewVersions, `${path}.admissionReviewVersions`, errors);
    if (webhook.name !== '') checkUnique(webhook.name, names, `${path}.name`, errors);
  }
  return errors;
}

function checkWebhook(webhook: Webhook, path: string, errors: Errors): void {
  checkFullName(webhook.name, `${path}.name`, errors);
  for (const [i, rule] of (webhook.rules ?? []).entries()) checkRule(rule, `${path}.rules[${i}]`, errors);
  checkOneOf(webhook.failurePolicy, ['Fail', 'Ignore'], `${path}.failurePolicy`, errors);
  checkOneOf(webhook.matchPolicy, ['Equivalent', 'Exact'], `${path}.matchPolicy`, errors);
  const { sideEffects, timeoutSeconds } = webhook;
  if (sideEffects === undefined)
    errors.push(fieldError.required(`${path}.sideEffects`, `must specify one of ${harmless.join(', ')}`));
  else if (!harmless.includes(sideEffects))
    errors.push(fieldError.notSupported(`${path}.sideEffects`, sideEffects, harmless));
  if (timeoutSeconds !== undefined && (timeoutSeconds < 1 || timeoutSeconds > longestTimeout)) {
    const text = `the timeout value must be between 1 and ${longestTimeout} seconds`;
    errors.push(fieldError.invalid(`${path}.timeoutSeconds`, timeoutSeconds, text));
  }
  checkLabelSelector(webhook.namespaceSelector, `${path}.namespaceSelector`, errors);
  checkLabelSelector(webhook.objectSelector, `${path}.objectSelector`, errors);
  checkOneOf(webhook.reinvocationPolicy, ['IfNeeded', 'Never'], `${path}.reinvocationPolicy`, errors);
  checkClientConfig(webhook.clientConfig, `${path}.clientConfig`, errors);
  checkMatchConditions(webhook.matchConditions, `${path}.matchConditions`, errors);
}

function checkFullName(name: string, path: string, errors: Errors): void {
  if (!checkText(name, path, errors)) return;
  const problems = dns1123SubdomainErrors(name);
  if (problems.length > 0) errors.push(fieldError.invalid(path, name, problems.join(',')));
  else if (name.split('.').length < 3) {
    const text = 'should be a domain with at least three segments separated by dots';
    errors.push(fieldError.invalid(path, name, text));
  }
}

function checkReviewVersions(versions: readonly string[], path: string, errors: Errors): void {
  if (versions.length === 0) {
    errors.push(fieldError.required(path, `must specify one of ${reviewVersions.join(', ')}`));
    return;
  }
  const seen = new Set<string>();
  for (const [i, version] of versions.entries()) {
    if (seen.has(version)) errors.push(fieldError.invalid(`${path}[${i}]`, version, 'duplicate version'));
    else pushInvalid(dns1035LabelErrors(version), version, `${path}[${i}]`, errors);
    seen.add(version);
  }
  if (!reviewVersions.some((version) => seen.has(version)))
    errors.push(fieldError.invalid(path, versions, `must include at least one of ${reviewVersions.join(', ')}`));
}

/** Validates the address of a webhook, which is also that of a conversion webhook. */
export function checkClientConfig({ url, service }: WebhookClientConfig, path: string, errors: Errors): void {
  if ((url === undefined) === (service === undefined))
    errors.push(fieldError.required(path, 'exactly one of url or service is required'));
  else if (url !== undefined) checkUrl(url, `${path}.url`, errors);
  else if (service !== undefined) checkService(service, `${path}.service`, errors);
}

const urlForm = '; desired format: https://host[/path]';

function checkUrl(text: string, path: string, errors: Errors): void {
  const parts = /^(?:([A-Za-z][\w+.-]*):)?(?:\/\/(?:([^/?#]*)@)?([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?$/.exec(text);
  const [, scheme = '', user, host = '', , query, fragment] = parts ?? [];
  if (parts === null || (host !== '' && !URL.canParse(text))) {
    errors.push(fieldError.required(path, `url must be a valid URL: parse ${JSON.stringify(text)}${urlForm}`));
    return;
  }
  if (scheme !== 'https')
    errors.push(fieldError.invalid(path, scheme, `'https' is the only allowed URL scheme${urlForm}`));
  if (host === '') errors.push(fieldError.invalid(path, host, `host must be specified${urlForm}`));
  if (user !== undefined) errors.push(fieldError.invalid(path, user, 'user information is not permitted in the URL'));
  if (fragment !== undefined && fragment !== '#')
    errors.push(fieldError.invalid(path, fragment.slice(1), 'fragments are not permitted in the URL'));
  if (query !== undefined && query !== '?')
    errors.push(fieldError.invalid(path, query.slice(1), 'query parameters are not permitted in the URL'));
}

function checkService({ namespace, name, path: urlPath, port }: ServiceReference, path: string, errors: Errors): void {
  checkText(name, `${path}.name`, errors);
  checkText(namespace, `${path}.namespace`, errors);
  const problems = portNumberErrors(port ?? 443);
  if (problems.length > 0)
    errors.push(fieldError.invalid(`${path}.port`, port, `port is not valid: ${problems.join(', ')}`));
  if (urlPath !== undefined) checkPath(urlPath, `${path}.path`, errors);
}

function checkPath(text: string, path: string, errors: Errors): void {
  if (text === '' || text === '/') return;
  if (text === '//') {
    errors.push(fieldError.invalid(path, text, 'segment[0] may not be empty'));
    return;
  }
  if (!text.startsWith('/')) errors.push(fieldError.invalid(path, text, "must start with a '/'"));
  const steps = text.slice(1).replace(/\/$/, '').split('/');
  for (const [i, step] of steps.entries()) {
    const problems = step === '' ? ['may not be empty'] : dns1123SubdomainErrors(step);
    for (const problem of problems) {
      const place = step === '' ? `segment[${i}] ` : `segment[${i}]: `;
      errors.push(fieldError.invalid(path, text, place + problem));
    }
  }
}
