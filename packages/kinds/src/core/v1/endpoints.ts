import { isIPv4 } from 'node:net';
import { defineKind, type FieldError, fieldError, type KindDefinition, qualifiedNameErrors } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { addressWarnings } from '../../validation/address-warnings.ts';
import { checkPublicAddress } from '../../validation/addresses.ts';
import {
  checkIp,
  checkName,
  checkRequiredOneOf,
  checkText,
  type Errors,
  newErrors,
  pushInvalid,
} from '../../validation/checks.ts';
import { checkPortNumber, protocols } from '../../validation/ports.ts';
import {
  type EndpointAddress,
  type EndpointPort,
  EndpointsSchema,
  type Endpoints as EndpointsType,
} from './schema/index.ts';

/** Maximum number of addresses in a table cell. */
const shown = 3;

/** The addresses of the pods of a service with the same name. */
export const Endpoints: KindDefinition<EndpointsType> = defineKind({
  group: '',
  version: 'v1',
  kind: 'Endpoints',
  deprecated: { since: '1.33', replacement: 'discovery.k8s.io/v1 EndpointSlice' },
  names: { plural: 'endpoints', singular: 'endpoints', shortNames: ['ep'] },
  schema: EndpointsSchema,
  strategy: {
    allowCreateOnUpdate: true,
    default(endpoints) {
      for (const subset of endpoints.subsets ?? []) for (const port of subset.ports ?? []) port.protocol ||= 'TCP';
    },
    validate: validateEndpoints,
    warnings: ({ subsets = [] }) =>
      subsets.flatMap((subset, i) =>
        (['addresses', 'notReadyAddresses'] as const).flatMap((field) =>
          (subset[field] ?? []).flatMap(({ ip }, j) => addressWarnings(ip, `subsets[${i}].${field}[${j}].ip`)),
        ),
      ),
  },
  columns: [nameColumn(), column('Endpoints', 'string', 'The first addresses.', endpointsText), ageColumn],
});
export type Endpoints = EndpointsType;

function validateEndpoints(endpoints: EndpointsType): FieldError[] {
  const errors = newErrors();
  endpoints.subsets?.forEach((subset, i) => {
    const path = `subsets[${i}]`;
    if (!subset.addresses?.length && !subset.notReadyAddresses?.length) {
      errors.push(fieldError.required(path, 'must specify `addresses` or `notReadyAddresses`'));
    }
    for (const field of ['addresses', 'notReadyAddresses'] as const) {
      subset[field]?.forEach((address, j) => {
        checkAddress(address, `${path}.${field}[${j}]`, errors);
      });
    }
    subset.ports?.forEach((port, j) => {
      checkPort(port, (subset.ports?.length ?? 0) > 1, `${path}.ports[${j}]`, errors);
    });
  });
  return errors;
}

function checkAddress(address: EndpointAddress, path: string, errors: Errors): void {
  if (checkIp(address.ip, `${path}.ip`, errors)) checkPublicAddress(address.ip, `${path}.ip`, errors);
  checkName(address.hostname, 'dns1123Label', `${path}.hostname`, errors);
  checkName(address.nodeName, 'dns1123Subdomain', `${path}.nodeName`, errors);
}

function checkPort(port: EndpointPort, named: boolean, path: string, errors: Errors): void {
  if (named) checkText(port.name, `${path}.name`, errors);
  checkName(port.name, 'dns1123Label', `${path}.name`, errors);
  checkPortNumber(port.port, `${path}.port`, errors);
  checkRequiredOneOf(port.protocol, protocols, `${path}.protocol`, errors);
  const { appProtocol } = port;
  if (appProtocol !== undefined)
    pushInvalid(qualifiedNameErrors(appProtocol), appProtocol, `${path}.appProtocol`, errors);
}

/** Formats the first pairs of address and port and counts the others. The full product may be very large. */
function endpointsText({ subsets }: EndpointsType): string {
  const texts: string[] = [];
  let count = 0;
  for (const { addresses = [], ports = [] } of subsets ?? []) {
    count += addresses.length * Math.max(ports.length, 1);
    for (const port of ports.length > 0 ? ports : [undefined]) {
      for (const { ip } of addresses) {
        if (texts.length === shown) break;
        texts.push(port === undefined ? ip : `${isIPv4(ip) ? ip : `[${ip}]`}:${port.port}`);
      }
      if (texts.length === shown) break;
    }
  }
  if (count === 0) return '<none>';
  return texts.join(',') + (count > shown ? ` + ${count - shown} more...` : '');
}
