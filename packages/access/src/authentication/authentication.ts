import type { IncomingMessage } from 'node:http';
import { type AuthenticatedToken, type AuthenticateToken, statusErrors, type UserInfo } from '@keelson/core';
import { bearerToken } from './bearer-tokens.ts';
import type { ClientCertificates } from './client-certificates.ts';
import { type RequestHeaders, requestHeaderUser } from './request-header.ts';

/** Which requests without credentials are served as the anonymous user; all others are answered with 401. */
export interface AnonymousAccess {
  readonly enabled: boolean;
  /** Exact paths; a path that ends with `/*` stands for all paths below it. Absent: all paths. */
  readonly paths?: readonly string[];
}

/** Requests of load balancers, and of clients that have no credentials yet. */
export const defaultAnonymousAccess: AnonymousAccess = {
  enabled: true,
  paths: ['/healthz', '/livez', '/readyz', '/version'].flatMap((path) => [path, `${path}/*`]),
};

/** The authenticators of a server. */
export interface RequestAuthenticators {
  readonly certificates: ClientCertificates;
  readonly requestHeaders?: RequestHeaders | undefined;
  /** Undefined: no token is valid. */
  readonly tokens: AuthenticateToken | undefined;
  readonly anonymous?: AnonymousAccess | undefined;
}

/** The user of a request; undefined for the anonymous user. */
export type AuthenticateRequest = (request: IncomingMessage) => UserInfo | undefined | Promise<UserInfo | undefined>;

function anonymousPaths({ enabled, paths }: AnonymousAccess): (url: string) => boolean {
  if (!enabled || paths === undefined) return () => enabled;
  const exact = new Set(paths.filter((path) => !path.endsWith('/*')));
  const prefixes = paths.filter((path) => path.endsWith('/*')).map((path) => path.slice(0, -1));
  return (url) => {
    const query = url.indexOf('?');
    const path = query === -1 ? url : url.slice(0, query);
    return exact.has(path) || prefixes.some((prefix) => path.startsWith(prefix));
  };
}

/**
 * Authenticates requests in the order of kube-apiserver: front proxy, client certificate, bearer token, anonymous. A
 * request whose credentials are all invalid is never anonymous; a valid token is sufficient beside an invalid
 * certificate. The result is synchronous unless a token has to be verified.
 *
 * The returned function throws, or rejects with, a StatusError 401.
 */
export function authentication(authenticators: RequestAuthenticators): AuthenticateRequest {
  const { certificates, requestHeaders, tokens } = authenticators;
  const mayBeAnonymous = anonymousPaths(authenticators.anonymous ?? defaultAnonymousAccess);
  const userOf = (found: AuthenticatedToken | undefined): UserInfo => {
    if (found === undefined) throw statusErrors.unauthorized();
    return found.user;
  };
  return (request) => {
    const { user, proxy } = certificates.clientOf(request);
    if (proxy && requestHeaders !== undefined) {
      const stated = requestHeaderUser(request, requestHeaders);
      if (stated !== undefined) return stated;
    }
    if (user !== undefined && user !== 'invalid') return user;
    const token = bearerToken(request);
    if (token !== undefined) {
      const found = tokens?.(token, []);
      return found instanceof Promise ? found.then(userOf) : userOf(found);
    }
    // An Authorization header of another scheme identifies no user and is not invalid either.
    if (user === 'invalid' || !mayBeAnonymous(request.url ?? '/')) throw statusErrors.unauthorized();
    return undefined;
  };
}
