import { isIPv4 as nodeIsIPv4, isIPv6 as nodeIsIPv6 } from 'node:net';

/** The headers by which a browser marks the requests of a page. */
export interface PageHeaders {
  readonly host?: string | undefined;
  /** The host in HTTP/2, which replaces the header `host`. */
  readonly ':authority'?: string | string[] | undefined;
  readonly origin?: string | undefined;
  readonly 'sec-fetch-site'?: string | string[] | undefined;
}

export interface AllowedHosts {
  /** Allowed host names and addresses besides those of the loopback interface, without ports. */
  readonly names?: readonly string[];
  /** True: every IP address. A page cannot make a browser send the address of another server than its own. */
  readonly anyAddress?: boolean;
  /** How more hosts are allowed, for the message of a refusal. */
  readonly remedy?: string;
}

const hostForm = /^(\[[0-9a-f:.]+\]|[^\s:/?#@[\]]+)(?::\d{0,5})?$/i;

/** The host of a `Host` header without port, brackets and the final dot; undefined when it is none. */
function hostName(header: string): string | undefined {
  return hostForm
    .exec(header)?.[1]
    ?.toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '');
}

function isLoopbackHost(host: string): boolean {
  if (nodeIsIPv4(host)) return host.startsWith('127.');
  return host === 'localhost' || host.endsWith('.localhost') || host === '::1';
}

/**
 * Decides whether a server that asks for no credentials serves a request. A page in a browser of this machine reaches
 * the loopback interface, too: by a request to another site, and after DNS rebinding (its own name leads to 127.0.0.1)
 * as its own site. The rules are those of https://www.w3.org/TR/fetch-metadata, and a list of hosts against rebinding.
 * Clients that are no browsers send none of these headers but `Host`.
 */
export class WebPageGuard {
  readonly #names: ReadonlySet<string>;
  readonly #anyAddress: boolean;
  readonly #remedy: string;
  /** The header that was allowed last: most clients send the same one again and again. */
  #allowedHeader: string | undefined;

  constructor({ names = [], anyAddress = false, remedy = '' }: AllowedHosts = {}) {
    this.#remedy = remedy === '' ? '' : `; ${remedy}`;
    this.#names = new Set(
      names.map((name) => hostName(name.includes(':') && !name.startsWith('[') ? `[${name}]` : name) ?? name),
    );
    this.#anyAddress = anyAddress;
  }

  /** Why a request is refused, as a sentence; undefined when it is served. */
  problem(headers: PageHeaders): string | undefined {
    const host = headers.host ?? (headers[':authority'] as string | undefined);
    if (host !== undefined && host !== this.#allowedHeader) {
      if (!this.#allowsHost(host)) {
        return `without credentials this server is not served under the host ${JSON.stringify(host)}${this.#remedy}`;
      }
      this.#allowedHeader = host;
    }
    const { origin, 'sec-fetch-site': site } = headers;
    if (origin === undefined && site === undefined) return undefined;
    if (site === undefined ? isOriginOf(origin, host) : site === 'same-origin' || site === 'none') {
      if (origin === undefined || this.#allowsOrigin(origin)) return undefined;
    }
    const from = origin === undefined ? '' : ` of ${JSON.stringify(origin)}`;
    return `without credentials web pages${from} may not call this server`;
  }

  #allowsHost(header: string): boolean {
    const host = hostName(header);
    if (host === undefined) return false;
    return (
      isLoopbackHost(host) || this.#names.has(host) || (this.#anyAddress && (nodeIsIPv4(host) || nodeIsIPv6(host)))
    );
  }

  #allowsOrigin(origin: string): boolean {
    return URL.canParse(origin) && this.#allowsHost(new URL(origin).host);
  }
}

/** Whether a page of this origin asks the server that it came from. */
function isOriginOf(origin: string | undefined, host: string | undefined): boolean {
  if (origin === undefined || host === undefined || !URL.canParse(origin)) return false;
  const { protocol, host: own } = new URL(origin);
  const asked = `${protocol}//${host}`;
  return own !== '' && URL.canParse(asked) && new URL(asked).host === own;
}
