import { defineKind, type FieldError, fieldError, type KindDefinition } from '@keelson/core';
import { checkIngressSpec, checkIngressStatus, checkResourceBackend } from '../../ingress/check-ingress.ts';
import { ingressColumns } from '../../ingress/ingress-columns.ts';
import { checkRequiredName, type Errors, newErrors } from '../../validation/checks.ts';
import { checkPortNumberOrName } from '../../validation/ports.ts';
import { type IngressBackend, IngressSchema, type Ingress as IngressType } from './schema/index.ts';

/** Routes external HTTP requests to services by host and path. Also the stored version of networking.k8s.io/v1. */
export const Ingress: KindDefinition<IngressType> = defineKind({
  group: 'extensions',
  version: 'v1beta1',
  kind: 'Ingress',
  deprecated: { since: '1.14', removed: '1.22', replacement: 'networking.k8s.io/v1 Ingress' },
  names: { shortNames: ['ing'] },
  schema: IngressSchema,
  strategy: {
    generation: 'spec',
    validate: validateIngress,
    validateStatusUpdate: validateIngressStatus,
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns: ingressColumns,
});
export type Ingress = IngressType;

/** Validates the spec of an ingress. */
function validateIngress({ spec }: IngressType): FieldError[] {
  const errors = newErrors();
  if (!spec.backend && !spec.rules?.length) {
    errors.push(fieldError.invalid('spec', spec, 'either `backend` or `rules` must be specified'));
  }
  if (spec.backend) checkBackend(spec.backend, 'spec.backend', errors);
  checkIngressSpec(spec, checkBackend, errors);
  return errors;
}

function checkBackend(backend: IngressBackend, path: string, errors: Errors): void {
  const { resource, serviceName, servicePort } = backend;
  if (resource) {
    if (serviceName || servicePort) {
      errors.push(fieldError.invalid(path, '', 'cannot set both resource and service backends'));
    }
    checkResourceBackend(resource, path, errors);
    return;
  }
  checkRequiredName(serviceName, 'dns1035Label', `${path}.serviceName`, errors);
  checkPortNumberOrName(servicePort, `${path}.servicePort`, errors);
}

/** Validates the status of an ingress. */
function validateIngressStatus({ status }: IngressType): FieldError[] {
  const errors = newErrors();
  checkIngressStatus(status, errors);
  return errors;
}
