import type { ImageAuth } from '@keelson/container-runtime';
import { maxDocumentBytes } from '../images/manifest.ts';
import { Authorizer } from './authorizer.ts';
import type { Endpoint } from './endpoints.ts';
import type { Answer, Exchange } from './exchange.ts';
import { RegistryError } from './registry-error.ts';

const maxRedirects = 5;
const redirects = new Set([301, 302, 303, 307, 308]);

/** One repository at one place, for the time of a pull. */
export class RegistrySession {
  readonly #exchange: Exchange;
  readonly #base: URL;
  readonly #repository: string;
  readonly #authorizer: Authorizer;

  constructor(exchange: Exchange, endpoint: Endpoint, repository: string, auth: ImageAuth | undefined) {
    this.#exchange = exchange;
    this.#base = new URL(endpoint.base);
    this.#repository = repository;
    this.#authorizer = new Authorizer(exchange, this.#base, endpoint.trusted ? auth : undefined);
  }

  /** @throws RegistryError */
  async manifest(version: string, accept: string, signal: AbortSignal): Promise<Buffer> {
    const url = this.#url(`manifests/${version}`);
    return this.#authorized(url, signal, async (headers) => {
      const answer = await this.#exchange.fetch({ url, signal, headers: { ...headers, accept } }, maxDocumentBytes);
      return { answer, value: answer.bytes };
    });
  }

  /** The body of a blob, from wherever the registry says it is. @throws RegistryError */
  async blob(digest: string, signal: AbortSignal): Promise<Answer> {
    const url = this.#url(`blobs/${digest}`);
    return this.#authorized(url, signal, async (headers) => {
      const answer = await this.#follow(url, headers, signal);
      return { answer, value: answer };
    });
  }

  /** Sends credentials as soon as they are asked for, and again once when they are not taken any more. */
  async #authorized<T>(
    url: URL,
    signal: AbortSignal,
    send: (headers: Record<string, string>) => Promise<{ readonly answer: Answer; readonly value: T }>,
  ): Promise<T> {
    let asked = 0;
    for (;;) {
      const header = this.#authorizer.header;
      const { answer, value } = await send(header === undefined ? {} : { authorization: header });
      if (answer.status === 200) return value;
      answer.body.destroy();
      if (answer.status !== 401 || asked === 2) throw refusal(url, answer.status);
      asked += 1;
      await this.#authorizer.answer(answer.headers['www-authenticate'], header, signal);
    }
  }

  async #follow(start: URL, headers: Record<string, string>, signal: AbortSignal): Promise<Answer> {
    let url = start;
    for (let hops = 0; hops <= maxRedirects; hops += 1) {
      // Whatever the registry's storage is, the credentials are not for it.
      const answer = await this.#exchange.send({ url, signal, headers: url.origin === start.origin ? headers : {} });
      const { location } = answer.headers;
      if (!redirects.has(answer.status) || location === undefined) {
        // Elsewhere, a refusal is no challenge to answer with the registry's credentials.
        if (answer.status === 401 && url.origin !== start.origin) {
          answer.body.destroy();
          throw refusal(url, 403);
        }
        return answer;
      }
      answer.body.destroy();
      url = redirected(url, location);
    }
    throw new RegistryError('invalid', `${start.host} redirects too often`);
  }

  #url(rest: string): URL {
    return new URL(`${this.#base.href.replace(/\/$/, '')}/v2/${this.#repository}/${rest}`);
  }
}

function redirected(from: URL, location: string): URL {
  const url = URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && from.protocol === 'http:')) return url;
  throw new RegistryError('invalid', `${from.host} redirects to an impossible place`);
}

function refusal(url: URL, status: number): RegistryError {
  const what = `${url.host}${url.pathname.slice(0, 300)}`;
  if (status === 401 || status === 403)
    return new RegistryError('unauthorized', `access to ${what} is denied (status ${status})`);
  if (status === 404) return new RegistryError('notFound', `${what} does not exist (status 404)`);
  if (status === 429) return new RegistryError('refused', `${url.host} gets too many requests (status 429)`);
  return new RegistryError('refused', `${what}: unexpected status ${status}`);
}
