import { type ConnectVerb, statusErrors } from '@keelson/core';

/** What a proxy path names: `name`, `name:port` or `scheme:name:port`. */
export interface ProxyTarget {
  readonly scheme: 'http' | 'https' | '';
  readonly name: string;
  /** A number, or the name of a port where the target has named ports; '' = the first. */
  readonly port: string;
}

/** @throws StatusError 400; `what` is the kind in lower case. */
export function proxyTarget(what: string, text: string): ProxyTarget {
  const words = text.split(':');
  const [scheme = '', name = '', port = ''] = words.length === 3 ? words : ['', ...words];
  if (words.length > 3 || name === '' || (scheme !== '' && scheme !== 'http' && scheme !== 'https')) {
    throw statusErrors.badRequest(`invalid ${what} request ${JSON.stringify(text)}`);
  }
  return { scheme, name, port };
}

/** The number that a proxy path gives for a port. @throws StatusError 400 */
export function portNumber(what: string, text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port < 1 || port > 65_535) {
    throw statusErrors.badRequest(
      `invalid ${what} request: the port must be a number from 1 to 65535, not ${JSON.stringify(text)}`,
    );
  }
  return port;
}

/** What is asked for without a port. */
export const defaultPorts = { http: 80, https: 443 } as const;

/** Of every proxy; they pass all methods on. */
export const proxyVerbs: readonly ConnectVerb[] = ['create', 'delete', 'get', 'patch', 'update'];
