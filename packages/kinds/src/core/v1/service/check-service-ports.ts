import { fieldError, qualifiedNameErrors } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { checkName, checkRequiredOneOf, checkText, checkUnique, pushInvalid } from '../../../validation/checks.ts';
import { checkPortNumber, checkPortNumberOrName, protocols } from '../../../validation/ports.ts';
import type { ServicePort, ServiceSpec } from '../schema/index.ts';

/** Validates the ports of a service: at least one, names if there are several, no duplicates. */
export function checkServicePorts(spec: ServiceSpec, path: string, errors: Errors): void {
  const ports = spec.ports ?? [];
  const headless = spec.clusterIP === 'None';
  if (ports.length === 0 && !headless && spec.type !== 'ExternalName') errors.push(fieldError.required(path));
  const names = new Set<string>();
  ports.forEach((port, i) => {
    const at = `${path}[${i}]`;
    if (ports.length > 1 || port.name) {
      if (checkText(port.name, `${at}.name`, errors)) {
        checkName(port.name, 'dns1123Label', `${at}.name`, errors);
        checkUnique(port.name, names, `${at}.name`, errors);
      }
    }
    checkPortNumber(port.port, `${at}.port`, errors);
    checkRequiredOneOf(port.protocol, protocols, `${at}.protocol`, errors);
    checkPortNumberOrName(port.targetPort, `${at}.targetPort`, errors);
    if (port.appProtocol)
      pushInvalid(qualifiedNameErrors(port.appProtocol), port.appProtocol, `${at}.appProtocol`, errors);
    checkNodePort(port, spec, at, errors);
  });
  checkRepeated(ports, path, errors);
}

function checkNodePort(port: ServicePort, spec: ServiceSpec, path: string, errors: Errors): void {
  if (!port.nodePort) return;
  if (spec.type === 'ClusterIP') {
    errors.push(fieldError.forbidden(`${path}.nodePort`, "may not be used when `type` is 'ClusterIP'"));
  }
  checkPortNumber(port.nodePort, `${path}.nodePort`, errors);
}

/** Rejects duplicate pairs of protocol and port, and of protocol and node port. */
function checkRepeated(ports: readonly ServicePort[], path: string, errors: Errors): void {
  const seen = new Set<string>();
  const seenNodePorts = new Set<string>();
  ports.forEach((port, i) => {
    const at = `${path}[${i}]`;
    const key = `${port.protocol}/${port.port}`;
    if (seen.has(key)) errors.push(fieldError.duplicate(at, { port: port.port, protocol: port.protocol }));
    seen.add(key);
    if (!port.nodePort) return;
    const nodeKey = `${port.protocol}/${port.nodePort}`;
    if (seenNodePorts.has(nodeKey)) {
      const detail = 'provided port is already allocated';
      errors.push(fieldError.invalid(`${at}.nodePort`, port.nodePort, detail));
    }
    seenNodePorts.add(nodeKey);
  });
}
