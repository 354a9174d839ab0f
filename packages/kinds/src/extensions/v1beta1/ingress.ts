import { type Column, defineKind, type KindDefinition } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { addressesText } from '../../columns/load-balancer.ts';
import { validateIngress, validateIngressStatus } from './ingress/validate-ingress.ts';
import { IngressSchema, type Ingress as IngressType } from './schema/index.ts';

/** The table shows this many hosts, and how many more there are. */
const shown = 3;

const columns: readonly Column<IngressType>[] = [
  nameColumn(),
  column('Class', 'string', 'Class, and so the implementation.', (ingress) => ingress.spec.ingressClassName ?? '<none>'),
  column('Hosts', 'string', 'The first hosts.', hostsText),
  column('Address', 'string', 'Where traffic is taken.', (ingress) => addressesText(ingress.status?.loadBalancer)),
  column('Ports', 'string', 'Ports on which traffic is taken.', (ingress) => (ingress.spec.tls?.length ? '80, 443' : '80')),
  ageColumn,
];

/** Leads outside HTTP requests to services, by host and path. */
export const Ingress: KindDefinition<IngressType> = defineKind({
  group: 'extensions',
  version: 'v1beta1',
  kind: 'Ingress',
  names: { shortNames: ['ing'] },
  schema: IngressSchema,
  strategy: {
    generation: 'spec',
    statusSubresource: true,
    validate: validateIngress,
    validateStatusUpdate: validateIngressStatus,
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns,
});
export type Ingress = IngressType;

function hostsText({ spec }: IngressType): string {
  const hosts = (spec.rules ?? []).map(({ host }) => host ?? '').filter(Boolean);
  if (hosts.length === 0) return '*';
  const more = hosts.length - shown;
  return hosts.slice(0, shown).join(',') + (more > 0 ? ` + ${more} more...` : '');
}
