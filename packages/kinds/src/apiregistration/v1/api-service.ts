import {
  defineKind,
  dns1035LabelErrors,
  dns1123SubdomainErrors,
  type FieldError,
  fieldError,
  type KindDefinition,
  portNumberErrors,
} from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { checkText, type Errors, newErrors, pushInvalid } from '../../validation/checks.ts';
import { APIServiceSchema, type APIService as APIServiceType } from './schema.ts';

const maxGroupPriority = 20_000;
const maxVersionPriority = 1000;
const conditionStates = ['True', 'False', 'Unknown'];

/** A version of an API group, and the server that serves it. */
export const APIService: KindDefinition<APIServiceType> = defineKind({
  group: 'apiregistration.k8s.io',
  version: 'v1',
  kind: 'APIService',
  scope: 'Cluster',
  names: { categories: ['api-extensions'] },
  schema: APIServiceSchema,
  strategy: {
    nameRule: 'pathSegment',
    generation: 'none',
    statusKeepsMetadata: true,
    allowUnconditionalUpdate: false,
    default({ spec }) {
      if (spec.service) spec.service.port ??= 443;
    },
    prepareForCreate(object, { now }) {
      if (object.spec.service) return;
      // An APIService without a service reference is served by this server itself.
      const lastTransitionTime = `${now.toISOString().slice(0, 19)}Z`;
      const message = 'Local APIServices are always available';
      const available = { type: 'Available', status: 'True', lastTransitionTime, reason: 'Local', message };
      object.status = { conditions: [available] };
    },
    validate: checkService,
    validateStatusUpdate({ status }) {
      const errors = newErrors();
      for (const [i, condition] of (status?.conditions ?? []).entries()) {
        if (conditionStates.includes(condition.status)) continue;
        const path = `status.conditions[${i}].status`;
        errors.push(fieldError.notSupported(path, condition.status, conditionStates));
      }
      return errors;
    },
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns: [
    nameColumn(),
    column(
      'Service',
      'string',
      'The reference to the service that hosts this API endpoint.',
      ({ spec: { service } }: APIServiceType) => (service ? `${service.namespace}/${service.name}` : 'Local'),
    ),
    column('Available', 'string', 'Whether this service is available.', availableText),
    ageColumn,
  ],
});
export type APIService = APIServiceType;

function availableText({ status }: APIServiceType): string {
  const found = status?.conditions?.find(({ type }) => type === 'Available');
  if (found === undefined) return 'Unknown';
  return found.status === 'True' || !found.reason ? found.status : `${found.status} (${found.reason})`;
}

function checkService({ metadata, spec }: APIServiceType): FieldError[] {
  const errors = newErrors();
  const { group = '', version = '', service, caBundle, insecureSkipTLSVerify } = spec;
  const name = `${version}.${group}`;
  if (metadata?.name !== name) {
    const text = `must be \`spec.version+"."+spec.group\`: ${JSON.stringify(name)}`;
    errors.push(fieldError.invalid('metadata.name', metadata?.name ?? '', text));
  }
  if (group === '' && version !== 'v1')
    errors.push(fieldError.required('spec.group', 'only v1 may have an empty group and it better be legacy kube'));
  if (group !== '') pushInvalid(dns1123SubdomainErrors(group), group, 'spec.group', errors);
  pushInvalid(dns1035LabelErrors(version), version, 'spec.version', errors);
  checkPriority(spec.groupPriorityMinimum, maxGroupPriority, 'spec.groupPriorityMinimum', errors);
  checkPriority(spec.versionPriority, maxVersionPriority, 'spec.versionPriority', errors);
  if (service === undefined) {
    if (caBundle) {
      const size = `${Buffer.from(caBundle, 'base64').length} bytes`;
      errors.push(fieldError.invalid('spec.caBundle', size, 'local APIServices may not have a caBundle'));
    }
    if (insecureSkipTLSVerify) {
      const text = 'local APIServices may not have insecureSkipTLSVerify';
      errors.push(fieldError.invalid('spec.insecureSkipTLSVerify', true, text));
    }
    return errors;
  }
  checkText(service.namespace, 'spec.service.namespace', errors);
  checkText(service.name, 'spec.service.name', errors);
  const problems = portNumberErrors(service.port ?? 443);
  if (problems.length > 0)
    errors.push(fieldError.invalid('spec.service.port', service.port, `port is not valid: ${problems.join(', ')}`));
  if (insecureSkipTLSVerify && caBundle)
    errors.push(fieldError.invalid('spec.insecureSkipTLSVerify', true, 'may not be true if caBundle is present'));
  return errors;
}

function checkPriority(value: number, max: number, path: string, errors: Errors): void {
  if (value > 0 && value <= max) return;
  errors.push(fieldError.invalid(path, value, `must be positive and less than ${max}`));
}
