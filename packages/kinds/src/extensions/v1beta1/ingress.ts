import { defineKind, type KindDefinition } from '@keelson/core';
import { ingressColumns } from '../../networking/ingress-columns.ts';
import { validateIngress, validateIngressStatus } from './ingress/validate-ingress.ts';
import { IngressSchema, type Ingress as IngressType } from './schema/index.ts';

/** Leads outside HTTP requests to services, by host and path. Also the stored form of networking.k8s.io/v1. */
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
