import type { Column, KubeObject } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../columns/columns.ts';
import { addressesText } from '../columns/load-balancer.ts';

/** Fields of an ingress that the table uses; the same in all versions. */
interface ShownIngress extends KubeObject {
  readonly spec: {
    readonly ingressClassName?: string;
    readonly rules?: readonly { readonly host?: string }[];
    readonly tls?: readonly unknown[];
  };
  readonly status?: { readonly loadBalancer?: Parameters<typeof addressesText>[0] };
}

/** Maximum number of hosts in a table cell. */
const shown = 3;

/** Columns of ingresses of every version. */
export const ingressColumns: readonly Column<ShownIngress>[] = [
  nameColumn(),
  column('Class', 'string', 'Ingress class.', (ingress: ShownIngress) => ingress.spec.ingressClassName ?? '<none>'),
  column('Hosts', 'string', 'The first hosts.', hostsText),
  column('Address', 'string', 'Addresses of the load balancer.', (ingress: ShownIngress) =>
    addressesText(ingress.status?.loadBalancer),
  ),
  column('Ports', 'string', 'Ports of the ingress.', (ingress: ShownIngress) =>
    ingress.spec.tls?.length ? '80, 443' : '80',
  ),
  ageColumn,
];

function hostsText({ spec }: ShownIngress): string {
  const hosts = (spec.rules ?? []).map(({ host }) => host ?? '').filter(Boolean);
  if (hosts.length === 0) return '*';
  const more = hosts.length - shown;
  return hosts.slice(0, shown).join(',') + (more > 0 ? ` + ${more} more...` : '');
}
