import { fieldError, portNameErrors } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { checkIp, checkRequiredOneOf, checkUnique, pushInvalid } from '../../../validation/checks.ts';
import { checkPortNumber, protocols } from '../../../validation/ports.ts';
import type { Container, EphemeralContainer } from '../schema/index.ts';

/** Context of port checks. `hostPorts` collects the host ports of all containers. */
interface PortScope {
  readonly hostNetwork: boolean;
  readonly hostPorts: Set<string>;
}

/** Validates the ports of a container. Names are unique in the container, host ports in the pod. */
export function checkContainerPorts(
  container: Container | EphemeralContainer,
  scope: PortScope,
  path: string,
  errors: Errors,
): void {
  const names = new Set<string>();
  container.ports?.forEach((port, i) => {
    const at = `${path}.ports[${i}]`;
    if (port.name) {
      pushInvalid(portNameErrors(port.name), port.name, `${at}.name`, errors);
      checkUnique(port.name, names, `${at}.name`, errors);
    }
    if (!port.containerPort) errors.push(fieldError.required(`${at}.containerPort`));
    else checkPortNumber(port.containerPort, `${at}.containerPort`, errors);
    checkRequiredOneOf(port.protocol, protocols, `${at}.protocol`, errors);
    if (port.hostIP) checkIp(port.hostIP, `${at}.hostIP`, errors);
    if (scope.hostNetwork && port.hostPort !== port.containerPort) {
      errors.push(
        fieldError.invalid(
          `${at}.hostPort`,
          port.hostPort ?? 0,
          'must match `containerPort` when `hostNetwork` is true',
        ),
      );
    }
    if (!port.hostPort) return;
    checkPortNumber(port.hostPort, `${at}.hostPort`, errors);
    const key = `${port.protocol ?? 'TCP'}/${port.hostIP ?? ''}/${port.hostPort}`;
    checkUnique(key, scope.hostPorts, `${at}.hostPort`, errors);
  });
}
