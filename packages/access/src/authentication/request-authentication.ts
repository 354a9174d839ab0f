import { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { RevocationList } from '@keelson/certificates';
import { type AuthenticatedToken, type AuthenticateToken, statusErrors, type UserInfo } from '@keelson/core';
import type { Clock, Histogram, Logger, Metrics } from '@keelson/core/runtime';
import { authenticatedUser, bearerToken, type RequestHeaders, requestHeaderUser } from './request-credentials.ts';

/** Which requests without credentials are served as the anonymous user; all others are answered with 401. */
export interface AnonymousAccess {
  readonly enabled: boolean;
  /** Exact paths; a path that ends with `/*` stands for all paths below it. Absent: all paths. */
  readonly paths?: readonly string[];
}

/** Anonymous access to the paths that load balancers and clients without credentials use. */
export const defaultAnonymousAccess: AnonymousAccess = {
  enabled: true,
  paths: ['/healthz', '/livez', '/readyz', '/version'].flatMap((path) => [path, `${path}/*`]),
};

/** The means by which a server identifies its clients. */
export interface RequestAuthenticators {
  readonly certificates: ClientCertificates;
  readonly requestHeaders?: RequestHeaders | undefined;
  /** Verifies bearer tokens; undefined: no token is valid. */
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
 * certificate.
 */
export class RequestAuthentication {
  #authenticators: RequestAuthenticators;
  #mayBeAnonymous: (url: string) => boolean;

  constructor(authenticators: RequestAuthenticators) {
    this.#authenticators = authenticators;
    this.#mayBeAnonymous = anonymousPaths(authenticators.anonymous ?? defaultAnonymousAccess);
  }

  /** Replaces the means of identification. Requests that are being authenticated are not affected. */
  update(authenticators: RequestAuthenticators): void {
    this.#authenticators = authenticators;
    this.#mayBeAnonymous = anonymousPaths(authenticators.anonymous ?? defaultAnonymousAccess);
  }

  /**
   * The user of a request; undefined for the anonymous user. Synchronous unless a token has to be verified.
   *
   * @throws StatusError 401, or rejects with it
   */
  readonly authenticate: AuthenticateRequest = (request) => {
    const { certificates, requestHeaders, tokens } = this.#authenticators;
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
    if (user === 'invalid' || !this.#mayBeAnonymous(request.url ?? '/')) throw statusErrors.unauthorized();
    return undefined;
  };
}

function userOf(found: AuthenticatedToken | undefined): UserInfo {
  if (found === undefined) throw statusErrors.unauthorized();
  return found.user;
}

/** Authorities by which client certificates are verified. */
export interface ClientTrust {
  /** Authorities of users. */
  readonly users: readonly X509Certificate[];
  /** Authorities of front proxies. */
  readonly proxies: readonly X509Certificate[];
  /** Common names of front proxies; empty: every certificate of their authorities. */
  readonly proxyNames: readonly string[];
  readonly revoked?: RevocationList | undefined;
}

/** The client of a connection. */
export interface ConnectionClient {
  /** `invalid` for a certificate that does not authenticate a user; undefined without a certificate. */
  readonly user: UserInfo | 'invalid' | undefined;
  /** The client is a front proxy, whose headers state the user. */
  readonly proxy: boolean;
}

interface Identity extends ConnectionClient {
  /** End of the certificate's validity in epoch milliseconds. */
  readonly notAfterMs: number;
}

const noClient: Identity = { user: undefined, proxy: false, notAfterMs: Number.POSITIVE_INFINITY };
const invalidClient: Identity = { user: 'invalid', proxy: false, notAfterMs: Number.POSITIVE_INFINITY };
/** Extra field of a user that identifies the credential, for example in the audit log. */
const credentialId = 'authentication.kubernetes.io/credential-id';
/** Longest chain of certificates, including the certificate of the client and the authority. */
const maxChain = 8;
const maxIntermediates = 256;

export interface ClientCertificatesOptions {
  readonly trust: ClientTrust;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/**
 * Authenticates clients by certificates: see docs/reference/api-rules.md#client-certificates. TLS has verified the
 * chain against all authorities together; this class determines whether the authority is one of users or of front
 * proxies, and whether a certificate was revoked. The result is computed once per connection and again after
 * {@link trust} has changed.
 */
export class ClientCertificates {
  readonly #options: ClientCertificatesOptions;
  readonly #lifetimes: Histogram;
  #trust: ClientTrust;
  #identities = new WeakMap<object, Identity>();
  /** Verified intermediate authorities by fingerprint. Clients that resume a TLS session do not send them again. */
  readonly #intermediates = new Map<string, X509Certificate>();
  #outdatedLogged = false;

  constructor(options: ClientCertificatesOptions) {
    this.#options = options;
    this.#trust = options.trust;
    this.#lifetimes = options.metrics.histogram({
      name: 'apiserver_client_certificate_expiration_seconds',
      help: 'Distribution of the remaining lifetime on the certificate used to authenticate a request.',
      buckets: [0, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 345600, 604800, 2592000, 7776000, 15552000, 31104000],
    });
  }

  get trust(): ClientTrust {
    return this.#trust;
  }

  /** Replaces the authorities. Clients of existing connections are checked again with their next request. */
  set trust(trust: ClientTrust) {
    this.#trust = trust;
    this.#identities = new WeakMap();
    this.#intermediates.clear();
    this.#outdatedLogged = false;
  }

  clientOf(request: IncomingMessage): ConnectionClient {
    const connection = connectionOf(request);
    let known = this.#identities.get(connection);
    if (known === undefined) {
      known = this.#identify(request.socket as TLSSocket);
      this.#identities.set(connection, known);
    }
    return known.notAfterMs <= this.#options.clock.now() ? invalidClient : known;
  }

  #identify(socket: TLSSocket): Identity {
    const certificate = socket.getPeerX509Certificate?.();
    if (certificate === undefined) return noClient;
    if (socket.authorized !== true) return invalidClient;
    const { users, proxies, proxyNames, revoked } = this.#trust;
    const subject = certificate.toLegacyObject().subject as unknown as Record<string, string | string[] | undefined>;
    const name = words(subject?.['CN'])[0] ?? '';
    const valid = (authorities: readonly X509Certificate[]) => {
      const path = this.#path(certificate, authorities);
      return path !== undefined && !path.some(({ raw }) => revoked?.revokes(raw));
    };
    this.#logOutdated();
    const proxy = (proxyNames.length === 0 || proxyNames.includes(name)) && valid(proxies);
    const notAfterMs = Date.parse(certificate.validTo);
    this.#lifetimes.observe(Math.max(0, notAfterMs - this.#options.clock.now()) / 1000);
    if (name === '' || !valid(users)) return proxy ? { user: 'invalid', proxy, notAfterMs } : invalidClient;
    const fingerprint = certificate.fingerprint256.replaceAll(':', '').toLowerCase();
    const extra = { [credentialId]: [`X509SHA256=${fingerprint}`] };
    return { user: authenticatedUser({ name, groups: words(subject?.['O']), extra }), proxy, notAfterMs };
  }

  #logOutdated(): void {
    const { clock, logger } = this.#options;
    const { nextUpdateMs } = this.#trust.revoked ?? {};
    if (nextUpdateMs === undefined || nextUpdateMs > clock.now() || this.#outdatedLogged) return;
    this.#outdatedLogged = true;
    const until = new Date(nextUpdateMs).toISOString();
    logger.warn('a certificate revocation list has expired; it remains in use, newer revocations are unknown', {
      until,
    });
  }

  /** The chain from a certificate to one of the authorities. TLS has checked validity and usage. */
  #path(leaf: X509Certificate, authorities: readonly X509Certificate[]): X509Certificate[] | undefined {
    const path = [leaf];
    const sent = sentAuthorities(leaf);
    for (let last = leaf; path.length < maxChain; ) {
      const issuedBy = (candidate: X509Certificate) =>
        last.checkIssued(candidate) && candidate.ca && last.verify(candidate.publicKey);
      const anchor = authorities.find((one) => one.raw.equals(last.raw) || issuedBy(one));
      if (anchor !== undefined) {
        for (const intermediate of path.slice(1)) this.#keep(intermediate);
        return [...path, anchor];
      }
      const next = [...sent, ...this.#intermediates.values()].find((one) => !path.includes(one) && issuedBy(one));
      if (next === undefined) return undefined;
      path.push(next);
      last = next;
    }
    return undefined;
  }

  #keep(intermediate: X509Certificate): void {
    if (this.#intermediates.size < maxIntermediates) this.#intermediates.set(intermediate.fingerprint256, intermediate);
  }
}

function words(value: string | string[] | undefined): string[] {
  return value === undefined ? [] : Array.isArray(value) ? value : [value];
}

/** The object that all requests of a connection share. In HTTP/2 every request has a socket object of its own. */
function connectionOf(request: IncomingMessage): object {
  return (request as IncomingMessage & Partial<Pick<Http2ServerRequest, 'stream'>>).stream?.session ?? request.socket;
}

/** The certificates that a client has sent in addition to its own. */
function sentAuthorities(leaf: X509Certificate): X509Certificate[] {
  const found: X509Certificate[] = [];
  for (let next = leaf.issuerCertificate; next !== undefined && found.length < maxChain; next = next.issuerCertificate)
    found.push(next);
  return found;
}

/** Parses PEM certificates. @throws Error without one, and for an invalid one */
export function parseCertificates(content: Buffer): X509Certificate[] {
  const blocks = content.toString('latin1').match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs) ?? [];
  // TLS ignores text that is not a certificate and would then reject every client.
  if (blocks.length === 0) throw new Error('the file contains no certificate in PEM');
  return blocks.map((block, at) => {
    try {
      return new X509Certificate(block);
    } catch {
      throw new Error(`certificate ${at + 1} of the file cannot be read`);
    }
  });
}
