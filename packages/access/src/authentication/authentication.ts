import type { X509Certificate } from 'node:crypto';
import { parseRevocationLists, type RevocationList } from '@keelson/certificates';
import type { AuthenticateToken, ResourceClient } from '@keelson/core';
import { UsageError } from '@keelson/core/internal';
import type { Clock, Logger, Metrics } from '@keelson/core/runtime';
import type { Secret } from '@keelson/kinds';
import { parseAuthenticationConfig } from './authentication-config.ts';
import { bootstrapTokenAuthenticator } from './bootstrap-tokens.ts';
import { type JwtIssuer, jwtAuthenticator } from './oidc.ts';
import {
  type AnonymousAccess,
  type AuthenticateRequest,
  ClientCertificates,
  parseCertificates,
  RequestAuthentication,
} from './request-authentication.ts';
import type { RequestHeaders } from './request-credentials.ts';
import { type TokenAuthenticator, tokenChain, tokensForServer } from './token-chain.ts';
import { parseTokenFile, tokenUsers } from './token-file.ts';
import { type TokenWebhook, tokenWebhook } from './token-webhook.ts';
import { WatchedFile } from './watched-file.ts';

/** Sources of identities. Files are read again when they change. */
export interface AuthenticationOptions {
  /** File of bearer tokens, their users and groups. */
  readonly tokenFile?: string;
  /** Issuers of JSON web tokens. Excludes `configFile`. */
  readonly jwt?: readonly JwtIssuer[];
  /** File with an AuthenticationConfiguration: issuers of JSON web tokens, and anonymous access. */
  readonly configFile?: string;
  /** A server that reviews tokens. */
  readonly webhook?: TokenWebhook;
  /** Anonymous access. Default: health and version paths only. Excludes the field `anonymous` of `configFile`. */
  readonly anonymous?: AnonymousAccess;
  /** File of authorities of client certificates, PEM, in addition to the authority of the server's credentials. */
  readonly clientAuthorityFile?: string;
  /** File of revocation lists of client certificates, PEM or DER. */
  readonly revocationFile?: string;
  /** A front proxy that authenticates users and states them in headers. */
  readonly requestHeaders?: RequestHeaders & {
    /** Authorities of the client certificates of front proxies, PEM. */
    readonly authorityFile: string;
    /** Common names of front proxies. Absent or empty: every certificate of the authorities. */
    readonly allowedNames?: readonly string[];
  };
}

export interface AuthenticationContext {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Further sources of tokens, asked after static and bootstrap tokens. */
  readonly tokens?: readonly TokenAuthenticator[];
  /** Where bootstrap tokens are stored. Absent: no bootstrap token is valid. */
  readonly secrets?: (() => ResourceClient<Secret>) | undefined;
  /** Audiences of the server: those of tokens that name none. Default none. */
  readonly audiences?: readonly string[];
}

/** The authentication of the requests of one server. */
export interface ServerAuthentication {
  readonly authenticate: AuthenticateRequest;
  /** All authorities by which TLS verifies clients, PEM. */
  authorities(): string[];
  /** Replaces the authorities of the server's credentials, PEM. */
  setOwnAuthorities(pem: string): void;
  /** Called after the authorities have changed. */
  onChange: () => void;
  close(): void;
}

/**
 * The opened sources of identities. Their files are checked for changes until {@link stop}. While a changed file is
 * invalid, its previous content remains in use.
 */
export class Authentication {
  readonly #options: AuthenticationOptions;
  readonly #context: AuthenticationContext;
  readonly #stops: (() => void)[] = [];
  readonly #servers = new Set<() => void>();
  #users: () => readonly X509Certificate[] = () => [];
  #proxies: () => readonly X509Certificate[] = () => [];
  #revoked: () => RevocationList | undefined = () => undefined;
  #anonymous: () => AnonymousAccess | undefined;
  #authenticateToken: AuthenticateToken = () => undefined;

  private constructor(options: AuthenticationOptions, context: AuthenticationContext) {
    this.#options = options;
    this.#context = context;
    this.#anonymous = () => options.anonymous;
  }

  /** Opens the sources. @throws UsageError for a file that cannot be read or has invalid content */
  static async open(options: AuthenticationOptions, context: AuthenticationContext): Promise<Authentication> {
    const opened = new Authentication(options, context);
    try {
      await opened.#openCertificates();
      await opened.#openTokens();
      return opened;
    } catch (error) {
      opened.stop();
      throw error;
    }
  }

  /** Checks the token of a TokenReview. One that requires no audience is answered with those of the server. */
  readonly reviewToken: AuthenticateToken = async (token, wanted) => {
    const { audiences = [] } = this.#context;
    const found = await this.#authenticateToken(token, wanted);
    return found && wanted.length === 0 ? { audiences, ...found } : found;
  };

  stop(): void {
    for (const stop of this.#stops.splice(0)) stop();
  }

  /** @param ownAuthorities PEM authorities of users, in addition to the configured ones; '' for none */
  forServer(ownAuthorities: string): ServerAuthentication {
    const { requestHeaders } = this.#options;
    let own = ownAuthorities === '' ? [] : parseCertificates(Buffer.from(ownAuthorities));
    const trust = () => ({
      users: [...own, ...this.#users()],
      proxies: this.#proxies(),
      proxyNames: requestHeaders?.allowedNames ?? [],
      revoked: this.#revoked(),
    });
    const certificates = new ClientCertificates({ trust: trust(), ...this.#context });
    const authenticators = () => ({
      certificates,
      requestHeaders,
      tokens: this.#authenticateToken,
      anonymous: this.#anonymous(),
    });
    const requests = new RequestAuthentication(authenticators());
    const changed = () => {
      certificates.trust = trust();
      requests.update(authenticators());
      server.onChange();
    };
    const server: ServerAuthentication = {
      authenticate: requests.authenticate,
      authorities: () => [...certificates.trust.users, ...certificates.trust.proxies].map(String),
      setOwnAuthorities: (pem) => {
        own = parseCertificates(Buffer.from(pem));
        changed();
      },
      onChange: () => {},
      close: () => this.#servers.delete(changed),
    };
    this.#servers.add(changed);
    return server;
  }

  async #watch<T>(
    option: string,
    path: string,
    parse: (content: Buffer, source: string) => T | Promise<T>,
    secret = false,
  ): Promise<() => T> {
    const source = `${option} ${path}`;
    const file = await WatchedFile.open<T>({
      ...this.#context,
      source,
      path,
      secret,
      parse: (content) => parse(content, source),
      onChange: () => {
        for (const changed of this.#servers) changed();
      },
    });
    this.#stops.push(() => file.stop());
    return () => file.value;
  }

  async #openCertificates(): Promise<void> {
    const { clientAuthorityFile, revocationFile, requestHeaders } = this.#options;
    if (clientAuthorityFile !== undefined)
      this.#users = await this.#watch('--client-ca-file', clientAuthorityFile, parseCertificates);
    if (requestHeaders !== undefined)
      this.#proxies = await this.#watch(
        '--requestheader-client-ca-file',
        requestHeaders.authorityFile,
        parseCertificates,
      );
    if (revocationFile === undefined) return;
    this.#revoked = await this.#watch('--client-crl-file', revocationFile, parseRevocationLists);
  }

  async #openTokens(): Promise<void> {
    const { tokenFile, webhook } = this.#options;
    const { clock, secrets, tokens = [], audiences = [] } = this.#context;
    const sources: TokenAuthenticator[] = [];
    if (tokenFile !== undefined) {
      const parse = (content: Buffer, source: string) => tokenUsers(parseTokenFile(content.toString('utf8'), source));
      const known = await this.#watch('--token-auth-file', tokenFile, parse, true);
      sources.push(tokensForServer({ name: 'token file', authenticate: (token) => known()(token, []) }, audiences));
    }
    if (secrets !== undefined) sources.push(tokensForServer(bootstrapTokenAuthenticator(secrets, clock), audiences));
    sources.push(...tokens);
    sources.push(tokensForServer(await this.#jwtSource(), audiences));
    if (webhook !== undefined) {
      const asked = await tokenWebhook(webhook, clock, audiences);
      this.#stops.push(() => asked.close());
      sources.push(asked);
    }
    this.#authenticateToken = tokenChain(sources, this.#context);
  }

  /** All issuers together; a token names its issuer, so at most one of them checks it. */
  async #jwtSource(): Promise<TokenAuthenticator> {
    const { jwt = [], configFile, anonymous } = this.#options;
    const opened = (list: readonly JwtIssuer[]) => list.map((issuer) => jwtAuthenticator(issuer, this.#context));
    let issuers = () => opened([]);
    if (configFile === undefined) {
      const fixed = opened(jwt);
      issuers = () => fixed;
    } else {
      if (jwt.length > 0) throw new UsageError('--authentication-config and the options --oidc-* exclude each other');
      const config = await this.#watch('--authentication-config', configFile, (content, source) => {
        const parsed = parseAuthenticationConfig(content, source);
        if (parsed.anonymous !== undefined && anonymous !== undefined)
          throw new UsageError(`${source}: the field anonymous and --anonymous-auth exclude each other`);
        return { anonymous: parsed.anonymous, issuers: opened(parsed.jwt) };
      });
      issuers = () => config().issuers;
      this.#anonymous = () => config().anonymous ?? anonymous;
    }
    const authenticate: AuthenticateToken = (token, audiences) => {
      for (const issuer of issuers()) {
        const found = issuer.authenticate(token, audiences);
        if (found !== undefined) return found;
      }
      return undefined;
    };
    return { name: 'jwt', authenticate };
  }
}
