import { type ConnectVerb, statusErrors } from '@keelson/core';

/** Target in a proxy path: `name`, `name:port` or `scheme:name:port`. */
export interface ProxyTarget {
  readonly scheme: 'http' | 'https' | '';
  readonly name: string;
  /** A port number, or a port name if the target has named ports; empty = the first port. */
  readonly port: string;
}

/** Parses a proxy target; `what` is the lower-case kind for messages. @throws StatusError 400 */
export function proxyTarget(what: string, text: string): ProxyTarget {
  const words = text.split(':');
  const [scheme = '', name = '', port = ''] = words.length === 3 ? words : ['', ...words];
  if (words.length > 3 || name === '' || (scheme !== '' && scheme !== 'http' && scheme !== 'https')) {
    throw statusErrors.badRequest(`invalid ${what} request ${JSON.stringify(text)}`);
  }
  return { scheme, name, port };
}

/** Parses a port number in a proxy path. @throws StatusError 400 */
export function portNumber(what: string, text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port < 1 || port > 65_535) {
    throw statusErrors.badRequest(
      `invalid ${what} request: the port must be a number from 1 to 65535, not ${JSON.stringify(text)}`,
    );
  }
  return port;
}

/** Ports for requests without a port, by scheme. */
export const defaultPorts = { http: 80, https: 443 } as const;

/** Verbs of proxy subresources, which forward all methods. */
export const proxyVerbs: readonly ConnectVerb[] = ['create', 'delete', 'get', 'patch', 'update'];
