import { type FieldError, fieldError } from '@keelson/core';
import { checkIngressSpec, checkIngressStatus, checkResourceBackend } from '../../../networking/ingress-checks.ts';
import { checkRequiredName } from '../../../validation/checks.ts';
import { type Errors, newErrors } from '../../../validation/errors.ts';
import { checkPortNumberOrName } from '../../../validation/ports.ts';
import type { Ingress, IngressBackend } from '../schema/index.ts';

/** A whole ingress: somewhere to send requests to, hosts by name, paths from the root. */
export function validateIngress({ spec }: Ingress): FieldError[] {
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

/** The status as its controller writes it. */
export function validateIngressStatus({ status }: Ingress): FieldError[] {
  const errors = newErrors();
  checkIngressStatus(status, errors);
  return errors;
}
