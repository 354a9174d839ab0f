import type { ImageAuth } from '@keelson/container-runtime';
import { maxDocumentBytes } from '../images/manifest.ts';
import { Authorizer } from './authorizer.ts';
import type { Endpoint } from './endpoints.ts';
import type { Answer, Exchange, ExchangeRequest } from './exchange.ts';
import { RegistryError } from './registry-error.ts';

const maxRedirects = 5;
const redirects = new Set([301, 302, 303, 307, 308]);

/** Access to one repository on one server, for the duration of a pull. */
export class RegistrySession {
  readonly #exchange: Exchange;
  readonly #base: URL;
  readonly #repository: string;
  /** Authorizers by origin. Only that of the registry itself has the credentials; redirect targets have none. */
  readonly #authorizers: Map<string, Authorizer>;

  constructor(exchange: Exchange, endpoint: Endpoint, repository: string, auth: ImageAuth | undefined) {
    this.#exchange = exchange;
    this.#base = new URL(endpoint.base);
    this.#repository = repository;
    const own = new Authorizer(exchange, this.#base, endpoint.trusted ? auth : undefined);
    this.#authorizers = new Map([[this.#base.origin, own]]);
  }

  /** `SCHEME://HOST:PORT` of the server, which may redirect. */
  get place(): string {
    return this.#base.origin;
  }

  /** Downloads a manifest by tag or digest. @throws RegistryError */
  async manifest(version: string, accept: string, signal: AbortSignal): Promise<Buffer> {
    const send = (request: ExchangeRequest) => this.#exchange.fetch(request, maxDocumentBytes);
    const { bytes } = await this.#get(`manifests/${version}`, { accept }, signal, send);
    return bytes;
  }

  /** The content of a blob. Follows redirects. @throws RegistryError */
  blob(digest: string, signal: AbortSignal): Promise<Answer> {
    return this.#get(`blobs/${digest}`, {}, signal, (request) => this.#exchange.send(request));
  }

  async #get<T extends Answer>(rest: string, headers: Headers, signal: AbortSignal, send: Send<T>): Promise<T> {
    let url = new URL(`${this.#base.href.replace(/\/$/, '')}/v2/${this.#repository}/${rest}`);
    for (let hops = 0; hops <= maxRedirects; hops += 1) {
      const answer = await this.#authorized({ url, headers, signal }, send);
      if (answer.status === 200) return answer;
      answer.body.destroy();
      const { location } = answer.headers;
      if (!redirects.has(answer.status) || location === undefined) throw refusal(url, answer.status);
      url = redirected(url, location);
    }
    throw new RegistryError('invalid', `${this.#base.host} returned too many redirects`);
  }

  /** Authenticates when the server requests it, and once more when the credentials have expired. */
  async #authorized<T extends Answer>(request: ExchangeRequest, send: Send<T>): Promise<T> {
    const authorizer = this.#authorizerOf(request.url);
    for (let asked = 0; ; asked += 1) {
      const { header } = authorizer;
      const headers = header === undefined ? request.headers : { ...request.headers, authorization: header };
      const answer = await send({ ...request, ...(headers && { headers }) });
      if (answer.status !== 401 || asked === 2) return answer;
      answer.body.destroy();
      await authorizer.answer(answer.headers['www-authenticate'], header, request.signal);
    }
  }

  #authorizerOf(url: URL): Authorizer {
    const known = this.#authorizers.get(url.origin) ?? new Authorizer(this.#exchange, url);
    this.#authorizers.set(url.origin, known);
    return known;
  }
}

type Headers = Readonly<Record<string, string>>;
type Send<T> = (request: ExchangeRequest) => Promise<T>;

function redirected(from: URL, location: string): URL {
  const url = URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && from.protocol === 'http:')) return url;
  throw new RegistryError('invalid', `${from.host} returned an invalid redirect`);
}

function refusal(url: URL, status: number): RegistryError {
  const what = `${url.host}${url.pathname.slice(0, 300)}`;
  if (status === 401 || status === 403)
    return new RegistryError('unauthorized', `access to ${what} is denied (status ${status})`);
  if (status === 404) return new RegistryError('notFound', `${what} does not exist (status 404)`);
  if (status === 429)
    return new RegistryError('refused', `${url.host} rejected the request because of a rate limit (status 429)`);
  return new RegistryError('refused', `${what}: unexpected status ${status}`);
}
