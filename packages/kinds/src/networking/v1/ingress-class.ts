import {
  defineKind,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  type FieldError,
  fieldError,
  type KindDefinition,
} from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { checkText, checkUnchanged, type Errors, newErrors, pushInvalid } from '../../validation/checks.ts';
import {
  type IngressClassParametersReference,
  IngressClassSchema,
  type IngressClass as IngressClassType,
} from './schema/index.ts';

const maxControllerBytes = 250;
const pathPattern = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";

/** Names an implementation of ingresses. */
export const IngressClass: KindDefinition<IngressClassType> = defineKind({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'IngressClass',
  scope: 'Cluster',
  names: { plural: 'ingressclasses' },
  schema: IngressClassSchema,
  strategy: {
    generation: 'spec',
    default({ spec }) {
      if (spec.parameters) spec.parameters.scope ??= 'Cluster';
    },
    validate: validateClass,
    validateUpdate({ spec }, { spec: old }) {
      const errors = newErrors();
      checkUnchanged(spec.controller, old.controller, 'spec.controller', errors);
      return errors;
    },
  },
  columns: [
    nameColumn(),
    column('Controller', 'string', 'The implementation.', ({ spec }: IngressClassType) => spec.controller ?? ''),
    column('Parameters', 'string', 'Object with settings.', ({ spec }: IngressClassType) =>
      parametersText(spec.parameters),
    ),
    ageColumn,
  ],
});
export type IngressClass = IngressClassType;

function parametersText(parameters: IngressClassParametersReference | undefined): string {
  if (!parameters) return '<none>';
  const { kind, apiGroup, name } = parameters;
  return `${kind}${apiGroup === undefined ? '' : `.${apiGroup}`}/${name}`;
}

function validateClass({ spec }: IngressClassType): FieldError[] {
  const errors = newErrors();
  const { controller = '', parameters } = spec;
  if (Buffer.byteLength(controller) > maxControllerBytes) {
    errors.push(fieldError.tooLong('spec.controller', maxControllerBytes));
  }
  checkPrefixedPath(controller, 'spec.controller', errors);
  if (parameters) checkParameters(parameters, 'spec.parameters', errors);
  return errors;
}

/** Requires a domain and a path, such as `example.com/ingress`. */
function checkPrefixedPath(value: string, path: string, errors: Errors): void {
  if (!checkText(value, path, errors)) return;
  const slash = value.indexOf('/');
  if (slash < 1 || slash === value.length - 1) {
    errors.push(fieldError.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")'));
    return;
  }
  pushInvalid(dns1123SubdomainErrors(value.slice(0, slash)), value.slice(0, slash), path, errors);
  const rest = value.slice(slash + 1);
  if (!new RegExp(`^${pathPattern}$`).test(rest)) {
    const detail = `Invalid path (regex used for validation is '${pathPattern}')`;
    errors.push(fieldError.invalid(path, rest, detail));
  }
}

function checkParameters(parameters: IngressClassParametersReference, path: string, errors: Errors): void {
  const { apiGroup, kind, name, scope, namespace } = parameters;
  if (apiGroup !== undefined) pushInvalid(dns1123SubdomainErrors(apiGroup), apiGroup, `${path}.apiGroup`, errors);
  checkSegment(kind, `${path}.kind`, errors);
  checkSegment(name, `${path}.name`, errors);
  if (scope === undefined) errors.push(fieldError.required(`${path}.scope`));
  else if (scope === 'Namespace') {
    if (namespace === undefined) {
      errors.push(fieldError.required(`${path}.namespace`, "`parameters.scope` is set to 'Namespace'"));
    } else pushInvalid(dns1123LabelErrors(namespace), namespace, `${path}.namespace`, errors);
  } else if (scope !== 'Cluster') {
    errors.push(fieldError.notSupported(`${path}.scope`, scope, ['Cluster', 'Namespace']));
  } else if (namespace !== undefined) {
    errors.push(fieldError.forbidden(`${path}.namespace`, "`parameters.scope` is set to 'Cluster'"));
  }
}

/** Requires a text that can be a segment of a path. */
function checkSegment(value: string, path: string, errors: Errors): void {
  if (!checkText(value, path, errors)) return;
  if (value === '.' || value === '..') errors.push(fieldError.invalid(path, value, `may not be '${value}'`));
  for (const sign of ['/', '%']) {
    if (value.includes(sign)) errors.push(fieldError.invalid(path, value, `may not contain '${sign}'`));
  }
}
