import { fieldError } from '@keelson/core';
import {
  checkNonNegative,
  checkPositive,
  checkRequiredOneOf,
  checkText,
  type Errors,
} from '../../../validation/checks.ts';
import { checkPortNumber, checkPortNumberOrName } from '../../../validation/ports.ts';
import type {
  ExecAction,
  GRPCAction,
  HTTPGetAction,
  Lifecycle,
  LifecycleHandler,
  Probe,
  SleepAction,
  TCPSocketAction,
} from '../schema/index.ts';

const headerRule =
  "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for " +
  "validation is '[-A-Za-z0-9]+')";

/** Handlers of probes and lifecycle hooks, of which exactly one must be set. */
interface Handlers {
  exec?: ExecAction;
  httpGet?: HTTPGetAction;
  tcpSocket?: TCPSocketAction;
  grpc?: GRPCAction;
  sleep?: SleepAction;
}

/** Requires exactly one complete handler. `grace` is the maximum of `sleep`, in seconds. */
function checkHandler(handler: Handlers, grace: number, path: string, errors: Errors): void {
  let named = 0;
  const first = (field: string): boolean => {
    named++;
    if (named === 1) return true;
    errors.push(fieldError.forbidden(`${path}.${field}`, 'may not specify more than 1 handler type'));
    return false;
  };
  const { exec, httpGet, tcpSocket, grpc, sleep } = handler;
  if (exec && first('exec') && !exec.command?.length) errors.push(fieldError.required(`${path}.exec.command`));
  if (httpGet && first('httpGet')) checkHttpGet(httpGet, `${path}.httpGet`, errors);
  if (tcpSocket && first('tcpSocket')) checkPortNumberOrName(tcpSocket.port, `${path}.tcpSocket.port`, errors);
  if (grpc && first('grpc')) checkPortNumber(grpc.port, `${path}.grpc.port`, errors);
  if (sleep && first('sleep') && (sleep.seconds < 0 || sleep.seconds > grace)) {
    const detail = `must be non-negative and less than terminationGracePeriodSeconds (${grace})`;
    errors.push(fieldError.invalid(`${path}.sleep`, sleep.seconds, detail));
  }
  if (named === 0) errors.push(fieldError.required(path, 'must specify a handler type'));
}

function checkHttpGet(action: HTTPGetAction, path: string, errors: Errors): void {
  checkText(action.path, `${path}.path`, errors);
  checkPortNumberOrName(action.port, `${path}.port`, errors);
  checkRequiredOneOf(action.scheme, ['HTTP', 'HTTPS'], `${path}.scheme`, errors);
  action.httpHeaders?.forEach((header) => {
    if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(header.name)) {
      errors.push(fieldError.invalid(`${path}.httpHeaders`, header.name, headerRule));
    }
  });
}

/** Hooks that run after the start and before the stop of a container. */
export function checkLifecycle(lifecycle: Lifecycle | undefined, grace: number, path: string, errors: Errors): void {
  const each: readonly [LifecycleHandler | undefined, string][] = [
    [lifecycle?.postStart, 'postStart'],
    [lifecycle?.preStop, 'preStop'],
  ];
  for (const [handler, field] of each) if (handler) checkHandler(handler, grace, `${path}.${field}`, errors);
}

/** Validates a probe. Liveness and startup probes require `successThreshold` 1. */
export function checkProbe(
  probe: Probe | undefined,
  role: 'liveness' | 'readiness' | 'startup',
  path: string,
  errors: Errors,
): void {
  if (!probe) return;
  checkHandler(probe, 0, path, errors);
  checkNonNegative(probe.initialDelaySeconds, `${path}.initialDelaySeconds`, errors);
  checkNonNegative(probe.timeoutSeconds, `${path}.timeoutSeconds`, errors);
  checkNonNegative(probe.periodSeconds, `${path}.periodSeconds`, errors);
  checkNonNegative(probe.successThreshold, `${path}.successThreshold`, errors);
  checkNonNegative(probe.failureThreshold, `${path}.failureThreshold`, errors);
  checkPositive(probe.terminationGracePeriodSeconds, `${path}.terminationGracePeriodSeconds`, errors);
  if (role === 'readiness') {
    if (probe.terminationGracePeriodSeconds !== undefined) {
      errors.push(
        fieldError.invalid(
          `${path}.terminationGracePeriodSeconds`,
          probe.terminationGracePeriodSeconds,
          'must not be set for readinessProbes',
        ),
      );
    }
  } else if (probe.successThreshold !== undefined && probe.successThreshold !== 1) {
    errors.push(fieldError.invalid(`${path}.successThreshold`, probe.successThreshold, 'must be 1'));
  }
}
