import { isIPv4, isIPv6 } from 'node:net';
import {
  type Column,
  defineKind,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  type FieldError,
  fieldError,
  type KindDefinition,
  labelValueErrors,
  qualifiedNameErrors,
} from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { addressWarnings } from '../../validation/address-warnings.ts';
import { checkCanonicalIp, checkPublicAddress } from '../../validation/addresses.ts';
import {
  checkIp,
  checkRequiredOneOf,
  checkUnchanged,
  checkUnique,
  type Errors,
  newErrors,
  pushInvalid,
  sameJson,
} from '../../validation/checks.ts';
import { standardAddress } from '../../validation/parse-address.ts';
import { protocols } from '../../validation/ports.ts';
import {
  type Endpoint,
  type EndpointHints,
  type EndpointPort,
  EndpointSliceSchema,
  type EndpointSlice as EndpointSliceType,
} from './schema.ts';

const maxEndpoints = 1000;
const maxPorts = 20_000;
const maxAddresses = 100;
const maxHints = 8;
/** Maximum number of items in a table cell. */
const shown = 3;

const columns: readonly Column<EndpointSliceType>[] = [
  nameColumn(),
  column('AddressType', 'string', 'Type of the addresses.', ({ addressType }) => addressType ?? ''),
  column('Ports', 'string', 'The first ports.', ({ ports }) => firstOf((ports ?? []).map(portText))),
  column('Endpoints', 'string', 'The first addresses.', ({ endpoints }) =>
    firstOf((endpoints ?? []).flatMap(({ addresses }) => addresses ?? [])),
  ),
  ageColumn,
];

/** A part of the endpoints of a service; the label `kubernetes.io/service-name` names the service. */
export const EndpointSlice: KindDefinition<EndpointSliceType> = defineKind({
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
  schema: EndpointSliceSchema,
  strategy: {
    generation: 'spec',
    default(slice) {
      for (const port of slice.ports ?? []) {
        port.name ??= '';
        port.protocol ??= 'TCP';
      }
    },
    prepareForCreate: dropTopology,
    prepareForUpdate(slice, old) {
      const { metadata } = slice;
      if (metadata && !sameJson(metadata.labels ?? {}, old.metadata?.labels ?? {})) {
        metadata.generation = (old.metadata?.generation ?? 0) + 1;
      }
      if (!sameJson(slice.endpoints, old.endpoints)) dropTopology(slice);
    },
    validate: validateSlice,
    validateCreate(slice) {
      const errors = newErrors();
      checkEndpoints(slice, errors);
      return errors;
    },
    validateUpdate(slice, old) {
      const errors = newErrors();
      // Stored slices may be invalid by today's rules. Such endpoints are accepted if they are unchanged.
      if (!sameJson(slice.endpoints, old.endpoints)) checkEndpoints(slice, errors);
      checkUnchanged(slice.addressType, old.addressType, 'addressType', errors);
      return errors;
    },
    warnings: ({ addressType, endpoints }) =>
      addressType === 'FQDN'
        ? ['spec.addressType: FQDN endpoints are deprecated']
        : endpoints.flatMap(({ addresses }, i) =>
            addresses.flatMap((address, j) => addressWarnings(address, `endpoints[${i}].addresses[${j}]`)),
          ),
  },
  columns,
});
export type EndpointSlice = EndpointSliceType;

/** Removes the field `deprecatedTopology`, which exists only in v1beta1. */
function dropTopology({ endpoints }: EndpointSliceType): void {
  for (const endpoint of endpoints) delete endpoint.deprecatedTopology;
}

function validateSlice({ addressType, ports = [] }: EndpointSliceType): FieldError[] {
  const errors = newErrors();
  checkRequiredOneOf(addressType, ['FQDN', 'IPv4', 'IPv6'], 'addressType', errors);
  if (ports.length > maxPorts) errors.push(fieldError.tooMany('ports', ports.length, maxPorts));
  else checkPorts(ports, errors);
  return errors;
}

function checkPorts(ports: readonly EndpointPort[], errors: Errors): void {
  const names = new Set<string>();
  ports.forEach(({ name = '', protocol, appProtocol }, i) => {
    const path = `ports[${i}]`;
    if (name !== '') pushInvalid(dns1123LabelErrors(name), name, `${path}.name`, errors);
    checkUnique(name, names, `${path}.name`, errors);
    checkRequiredOneOf(protocol, protocols, `${path}.protocol`, errors);
    if (appProtocol !== undefined) {
      pushInvalid(qualifiedNameErrors(appProtocol), appProtocol, `${path}.appProtocol`, errors);
    }
  });
}

function checkEndpoints({ endpoints, addressType }: EndpointSliceType, errors: Errors): void {
  if (endpoints.length > maxEndpoints) {
    errors.push(fieldError.tooMany('endpoints', endpoints.length, maxEndpoints));
    return;
  }
  endpoints.forEach((endpoint, i) => {
    checkEndpoint(endpoint, addressType, `endpoints[${i}]`, errors);
  });
}

function checkEndpoint({ addresses, ...endpoint }: Endpoint, type: string, path: string, errors: Errors): void {
  const at = `${path}.addresses`;
  if (addresses.length === 0) errors.push(fieldError.required(at, 'must contain at least 1 address'));
  else if (addresses.length > maxAddresses) errors.push(fieldError.tooMany(at, addresses.length, maxAddresses));
  addresses.forEach((address, i) => {
    checkAddress(address, type, at, `${at}[${i}]`, errors);
  });
  const { nodeName, hostname, hints } = endpoint;
  if (nodeName !== undefined) pushInvalid(dns1123SubdomainErrors(nodeName), nodeName, `${path}.nodeName`, errors);
  if (hostname !== undefined) pushInvalid(dns1123LabelErrors(hostname), hostname, `${path}.hostname`, errors);
  if (hints) checkHints(hints, `${path}.hints`, errors);
}

function checkAddress(address: string, type: string, list: string, path: string, errors: Errors): void {
  switch (type) {
    case 'IPv4':
      if (!checkIp(address, path, errors)) return;
      if (!isIPv4(standardAddress(address) ?? ''))
        errors.push(fieldError.invalid(list, address, 'must be an IPv4 address'));
      checkPublicAddress(address, path, errors);
      return;
    case 'IPv6':
      if (!checkCanonicalIp(address, path, errors)) return;
      if (!isIPv6(address)) errors.push(fieldError.invalid(list, address, 'must be an IPv6 address'));
      checkPublicAddress(address, path, errors);
      return;
    case 'FQDN':
      checkDomain(address, path, errors);
  }
}

function checkDomain(address: string, path: string, errors: Errors): void {
  if (address === '') {
    errors.push(fieldError.required(path));
    return;
  }
  const name = address.endsWith('.') ? address.slice(0, -1) : address;
  const details = dns1123SubdomainErrors(name);
  if (details.length > 0) errors.push(fieldError.invalid(path, name, details.join(',')));
  else if (!name.includes('.')) {
    errors.push(fieldError.invalid(path, name, 'should be a domain with at least two segments separated by dots'));
  }
}

function checkHints({ forZones = [], forNodes = [] }: EndpointHints, path: string, errors: Errors): void {
  checkHintNames(forZones, labelValueErrors, `${path}.forZones`, errors);
  checkHintNames(forNodes, dns1123SubdomainErrors, `${path}.forNodes`, errors);
}

function checkHintNames(
  hints: readonly { readonly name: string }[],
  problemsOf: (name: string) => readonly string[],
  path: string,
  errors: Errors,
): void {
  if (hints.length > maxHints) {
    errors.push(fieldError.tooMany(path, hints.length, maxHints));
    return;
  }
  const names = new Set<string>();
  hints.forEach(({ name }, i) => {
    checkUnique(name, names, `${path}[${i}].name`, errors);
    pushInvalid(problemsOf(name), name, `${path}[${i}].name`, errors);
  });
}

function portText({ port, name }: EndpointPort): string {
  return port === undefined ? (name ?? '*') : String(port);
}

function firstOf(texts: readonly string[]): string {
  if (texts.length === 0) return '<unset>';
  const more = texts.length > shown ? ` + ${texts.length - shown} more...` : '';
  return texts.slice(0, shown).join(',') + more;
}
