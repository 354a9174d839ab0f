import {
  type Column,
  defineKind,
  dns1123SubdomainErrors,
  type FieldError,
  fieldError,
  type KindDefinition,
  pathSegmentErrors,
} from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { checkCanonicalCidr, checkCanonicalIp } from '../../validation/addresses.ts';
import { checkText, checkUnchanged, type Errors, newErrors, pushInvalid } from '../../validation/checks.ts';
import {
  IPAddressSchema,
  type IPAddress as IPAddressType,
  type ParentReference,
  ServiceCIDRSchema,
  type ServiceCIDR as ServiceCIDRType,
} from './schema/index.ts';

const gv = { group: 'networking.k8s.io', version: 'v1', scope: 'Cluster' } as const;
const maxNetworks = 2;

/** Condition of a ServiceCIDR from which cluster IPs are allocated. */
export const serviceCidrReady = 'Ready';
/** Label of an IPAddress: IPv4 or IPv6. */
export const addressFamilyLabel = 'ipaddress.kubernetes.io/ip-family';
/** Label of an IPAddress: what creates and deletes it. */
export const addressManagerLabel = 'ipaddress.kubernetes.io/managed-by';
/** The manager of the addresses of services. */
export const serviceAddressManager = 'ipallocator.k8s.io';

const addressColumns: readonly Column<IPAddressType>[] = [
  nameColumn(),
  column('ParentRef', 'string', 'The object that has the address.', ({ spec }) => referenceText(spec.parentRef)),
  ageColumn,
];

/** An address that an object has, such as the cluster IP of a service. */
export const IPAddress: KindDefinition<IPAddressType> = defineKind({
  ...gv,
  kind: 'IPAddress',
  names: { plural: 'ipaddresses', shortNames: ['ip'] },
  schema: IPAddressSchema,
  strategy: {
    nameRule: 'pathSegment',
    generation: 'none',
    validate({ metadata, spec }) {
      const errors = newErrors();
      checkCanonicalIp(metadata?.name ?? '', 'metadata.name', errors);
      checkReference(spec.parentRef, errors);
      return errors;
    },
    validateUpdate({ spec }, { spec: old }) {
      const errors = newErrors();
      checkUnchanged(spec.parentRef, old.parentRef, 'spec.parentRef', errors);
      return errors;
    },
  },
  columns: addressColumns,
});
export type IPAddress = IPAddressType;

/** Networks from which cluster IPs of services are allocated. */
export const ServiceCIDR: KindDefinition<ServiceCIDRType> = defineKind({
  ...gv,
  kind: 'ServiceCIDR',
  schema: ServiceCIDRSchema,
  strategy: {
    generation: 'none',
    keepsStatusOnCreate: true,
    validate: ({ spec }) => networkErrors(spec.cidrs ?? []),
    validateUpdate({ spec }, { spec: old }) {
      const errors = newErrors();
      checkNetworksUnchanged(spec.cidrs ?? [], old.cidrs ?? [], errors);
      return errors;
    },
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns: [
    nameColumn(),
    column('CIDRs', 'string', 'The networks.', ({ spec }: ServiceCIDRType) => (spec.cidrs ?? []).join(',')),
    ageColumn,
  ],
});
export type ServiceCIDR = ServiceCIDRType;

function referenceText(reference: ParentReference | undefined): string {
  if (reference === undefined) return '<none>';
  const { group = '', resource, namespace = '', name } = reference;
  return [
    (group === '' ? resource : `${resource}.${group}`).toLowerCase(),
    ...(namespace === '' ? [] : [namespace]),
    name,
  ].join('/');
}

function checkReference({ group = '', resource, namespace = '', name }: ParentReference, errors: Errors): void {
  const segment = (value: string, path: string) => pushInvalid(pathSegmentErrors(value), value, path, errors);
  if (group !== '') pushInvalid(dns1123SubdomainErrors(group), group, 'spec.parentRef.group', errors);
  if (checkText(resource, 'spec.parentRef.resource', errors)) segment(resource, 'spec.parentRef.resource');
  if (checkText(name, 'spec.parentRef.name', errors)) segment(name, 'spec.parentRef.name');
  if (namespace !== '') segment(namespace, 'spec.parentRef.namespace');
}

function networkErrors(networks: readonly string[]): FieldError[] {
  const errors = newErrors();
  const path = 'spec.cidrs';
  if (networks.length === 0) errors.push(fieldError.required(path, 'at least one CIDR required'));
  if (networks.length > maxNetworks) errors.push(fieldError.invalid(path, networks, 'may only hold up to 2 values'));
  if (errors.length > 0) return errors;
  const parsed = networks.map((network, i) => checkCanonicalCidr(network, `${path}[${i}]`, errors));
  const [first, second] = parsed;
  if (first !== undefined && first.size === second?.size) {
    const detail = 'may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64';
    errors.push(fieldError.invalid(path, networks, detail));
  }
  return errors;
}

/** A network of the other family may be added. */
function checkNetworksUnchanged(networks: readonly string[], old: readonly string[], errors: Errors): void {
  const added = old.length === 1 && networks.length === maxNetworks;
  if (networks.length !== old.length && !added) checkUnchanged(networks, old, 'spec.cidrs', errors);
  else for (const [i, network] of old.entries()) checkUnchanged(networks[i], network, `spec.cidrs[${i}]`, errors);
}
