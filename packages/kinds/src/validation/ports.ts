import { fieldError, portNameErrors } from '@keelson/core';
import type { Errors } from './checks.ts';
import { checkRange } from './checks.ts';

/** Supported transport protocols of ports. */
export const protocols = ['SCTP', 'TCP', 'UDP'] as const;

/** Rejects port numbers outside 1 to 65535. */
export function checkPortNumber(port: number | undefined, path: string, errors: Errors): void {
  checkRange(port, 1, 65535, path, errors);
}

/** Requires a port number or the name of a container port. */
export function checkPortNumberOrName(port: number | string | undefined, path: string, errors: Errors): void {
  if (port === undefined || port === '') errors.push(fieldError.required(path));
  else if (typeof port === 'number') checkPortNumber(port, path, errors);
  else for (const detail of portNameErrors(port)) errors.push(fieldError.invalid(path, port, detail));
}
