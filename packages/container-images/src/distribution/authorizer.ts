import type { ImageAuth } from '@keelson/container-runtime';
import { type Challenge, parseChallenge } from './challenge.ts';
import type { Exchange } from './exchange.ts';
import { RegistryError } from './registry-error.ts';

/** Answers the challenges of one registry during one pull. */
export class Authorizer {
  readonly #exchange: Exchange;
  readonly #registry: URL;
  readonly #auth: ImageAuth;
  /** Current value of the `Authorization` header. */
  #header: string | undefined;
  #asking: Promise<string> | undefined;

  constructor(exchange: Exchange, registry: URL, auth: ImageAuth = {}) {
    this.#exchange = exchange;
    this.#registry = registry;
    this.#auth = auth;
    if (auth.registryToken) this.#header = `Bearer ${auth.registryToken}`;
  }

  /** Value of the `Authorization` header; undefined until the registry has requested one. */
  get header(): string | undefined {
    return this.#header;
  }

  /**
   * The header for a challenge; `rejected` is the header that was sent with the request. Concurrent requests share the
   * header.
   * @throws RegistryError when the challenge cannot be answered
   */
  async answer(challenge: string | undefined, rejected: string | undefined, signal: AbortSignal): Promise<string> {
    if (this.#header !== rejected && this.#header !== undefined) return this.#header;
    this.#asking ??= this.#find(parseChallenge(challenge ?? ''), rejected, signal).finally(() => {
      this.#asking = undefined;
    });
    this.#header = await this.#asking;
    return this.#header;
  }

  async #find(challenge: Challenge | undefined, rejected: string | undefined, signal: AbortSignal): Promise<string> {
    const { host } = this.#registry;
    if (challenge === undefined)
      throw new RegistryError('unauthorized', `${host} denied access without a supported challenge`);
    if (challenge.scheme === 'bearer' && !this.#auth.registryToken)
      return `Bearer ${await this.#token(challenge, signal)}`;
    const header = basicHeader(this.#auth);
    if (header === undefined || challenge.scheme === 'bearer')
      throw new RegistryError('unauthorized', `${host} requires credentials`);
    if (header === rejected) throw new RegistryError('unauthorized', `${host} rejected the credentials`);
    return header;
  }

  async #token(challenge: Challenge & { scheme: 'bearer' }, signal: AbortSignal): Promise<string> {
    const { realm, service, scope } = challenge;
    const url = this.#realm(realm);
    const { identityToken } = this.#auth;
    const parameters = { ...(service !== undefined && { service }), ...(scope !== undefined && { scope }) };
    const header = basicHeader(this.#auth);
    const answer = identityToken
      ? await this.#exchange.fetch(refreshRequest(url, identityToken, parameters, signal), maxTokenBytes)
      : await this.#exchange.fetch(
          { url: withQuery(url, parameters), signal, headers: header === undefined ? {} : { authorization: header } },
          maxTokenBytes,
        );
    const { status, bytes } = answer;
    if (status === 401 || status === 403 || status === 400) {
      const what = header === undefined && !identityToken ? 'requires credentials' : 'rejected the credentials';
      throw new RegistryError('unauthorized', `${url.host} ${what} (status ${status})`);
    }
    const token = status === 200 ? tokenIn(bytes) : undefined;
    if (token === undefined) throw new RegistryError('refused', `${url.host} returned no token (status ${status})`);
    return token;
  }

  /** The token URL. A registry with https cannot request credentials over http. */
  #realm(realm: string): URL {
    const url = URL.canParse(realm) ? new URL(realm) : undefined;
    const allowed = this.#registry.protocol === 'https:' ? ['https:'] : ['https:', 'http:'];
    if (url === undefined || !allowed.includes(url.protocol)) {
      throw new RegistryError(
        'invalid',
        `${this.#registry.host} specified an invalid token URL: "${realm.slice(0, 200)}"`,
      );
    }
    return url;
  }
}

const maxTokenBytes = 1 << 20;

function basicHeader({ username, password = '' }: ImageAuth): string | undefined {
  return username ? `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` : undefined;
}

function refreshRequest(url: URL, token: string, parameters: Record<string, string>, signal: AbortSignal) {
  const form = { grant_type: 'refresh_token', refresh_token: token, client_id: 'keelson', ...parameters };
  const body = new URLSearchParams(form).toString();
  return {
    url,
    method: 'POST' as const,
    body,
    signal,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  };
}

function withQuery(url: URL, parameters: Record<string, string>): URL {
  const copy = new URL(url);
  for (const [key, value] of Object.entries(parameters)) copy.searchParams.set(key, value);
  return copy;
}

function tokenIn(bytes: Buffer): string | undefined {
  try {
    const { token, access_token: accessToken } = JSON.parse(bytes.toString('utf8')) as Record<string, unknown>;
    const found = token ?? accessToken;
    return typeof found === 'string' && found !== '' ? found : undefined;
  } catch {
    return undefined;
  }
}
