import { defineKind, type FieldError, fieldError, type KindDefinition } from '@keelson/core';
import { checkIngressSpec, checkIngressStatus, checkResourceBackend, pathTypes } from '../../ingress/check-ingress.ts';
import { ingressColumns } from '../../ingress/ingress-columns.ts';
import { warnOfBalancerAddresses } from '../../validation/address-warnings.ts';
import { checkRequiredName, type Errors, newErrors } from '../../validation/checks.ts';
import { checkPortNumber, checkPortNumberOrName } from '../../validation/ports.ts';
import { ingressConversion } from './ingress-conversion.ts';
import { type IngressBackend, IngressSchema, type Ingress as IngressType } from './schema/index.ts';

const classAnnotation = 'kubernetes.io/ingress.class';

/** Routes external HTTP requests to services by host and path. Stored as extensions/v1beta1. */
export const NetworkingV1Ingress: KindDefinition<IngressType> = defineKind({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'Ingress',
  names: { shortNames: ['ing'] },
  schema: IngressSchema,
  storage: ingressConversion,
  strategy: {
    generation: 'spec',
    default: dropEmptyPorts,
    prepareForCreate({ metadata, spec }, { warn }) {
      const isAnnotated = metadata?.annotations?.[classAnnotation] !== undefined;
      if (!isAnnotated || spec.ingressClassName !== undefined) return;
      warn(`annotation "${classAnnotation}" is deprecated, please use 'spec.ingressClassName' instead`);
    },
    prepareForStatusUpdate({ status }, _old, { warn }) {
      warnOfBalancerAddresses(status?.loadBalancer, warn);
    },
    validate: validateIngress,
    validateCreate({ metadata, spec }) {
      const value = metadata?.annotations?.[classAnnotation];
      if (value === undefined || spec.ingressClassName === undefined || value === spec.ingressClassName) return [];
      const detail = 'must match `ingressClassName` when both are specified';
      return [fieldError.invalid(`annotations.${classAnnotation}`, value, detail)];
    },
    validateStatusUpdate({ status }) {
      const errors = newErrors();
      checkIngressStatus(status, errors);
      return errors;
    },
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns: ingressColumns,
});
export type NetworkingV1Ingress = IngressType;

function backendsOf({ spec }: IngressType): IngressBackend[] {
  const inRules = (spec.rules ?? []).flatMap(({ http }) => http?.paths ?? []).map(({ backend }) => backend);
  return spec.defaultBackend ? [spec.defaultBackend, ...inRules] : inRules;
}

/** Removes empty port names and ports with the number 0. The single port field of the stored version excludes them. */
function dropEmptyPorts(ingress: IngressType): void {
  for (const { service } of backendsOf(ingress)) {
    if (service?.port?.name === '') delete service.port.name;
    if (service?.port?.number === 0) delete service.port.number;
  }
}

function validateIngress({ spec }: IngressType): FieldError[] {
  const errors = newErrors();
  if (!spec.defaultBackend && !spec.rules?.length) {
    const detail = 'either `defaultBackend` or `rules` must be specified';
    errors.push(fieldError.invalid('spec', spec.rules ?? null, detail));
  }
  if (spec.defaultBackend) checkBackend(spec.defaultBackend, 'spec.defaultBackend', errors);
  spec.rules?.forEach(({ http }, i) => {
    http?.paths.forEach(({ pathType }, j) => {
      if (pathType) return;
      errors.push(fieldError.notSupported(`spec.rules[${i}].http.paths[${j}].pathType`, pathType, pathTypes));
    });
  });
  checkIngressSpec(spec, checkBackend, errors);
  return errors;
}

function checkBackend({ resource, service }: IngressBackend, path: string, errors: Errors): void {
  if (resource && service) {
    errors.push(fieldError.invalid(path, '', 'cannot set both resource and service backends'));
  } else if (resource) {
    checkResourceBackend(resource, path, errors);
  } else if (service) {
    checkRequiredName(service.name, 'dns1035Label', `${path}.service.name`, errors);
    const { name, number } = service.port ?? {};
    if (name !== undefined && number !== undefined) {
      errors.push(fieldError.invalid(path, '', 'cannot set both port name & port number'));
    } else if (name !== undefined) {
      checkPortNumberOrName(name, `${path}.service.port.name`, errors);
    } else if (number !== undefined) {
      checkPortNumber(number, `${path}.service.port.number`, errors);
    } else {
      errors.push(fieldError.required(path, 'port name or number is required'));
    }
  } else {
    errors.push(fieldError.invalid(path, '', 'resource or service backend is required'));
  }
}
