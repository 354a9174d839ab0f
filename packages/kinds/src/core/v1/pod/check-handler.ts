import { fieldError } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { checkRequiredOneOf, checkText } from '../../../validation/checks.ts';
import { checkPortNumber, checkPortNumberOrName } from '../../../validation/ports.ts';
import type {
  ExecAction,
  GRPCAction,
  HTTPGetAction,
  Lifecycle,
  LifecycleHandler,
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
export function checkHandler(handler: Handlers, grace: number, path: string, errors: Errors): void {
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
  action.httpHeaders?.forEach((header, i) => {
    if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(header.name)) {
      errors.push(fieldError.invalid(`${path}.httpHeaders[${i}].name`, header.name, headerRule));
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
