import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Access to the registry. With `token` and no user, every client gets a token. */
export type RegistryAuth =
  | { readonly kind: 'basic'; readonly username: string; readonly password: string }
  | { readonly kind: 'token'; readonly username?: string; readonly password?: string; readonly identityToken?: string };

/** Issues tokens and verifies those of requests. */
export class RegistryAccess {
  readonly #tokens = new Map<string, string>();

  /** The challenge of the answer; undefined when the request is authorized. */
  challenge(auth: RegistryAuth, request: IncomingMessage, base: string): string | undefined {
    const given = request.headers.authorization;
    if (auth.kind === 'basic') return given === basic(auth) ? undefined : 'Basic realm="registry"';
    const repository = /^\/v2\/(.+)\/(?:manifests|blobs)\//.exec(request.url ?? '')?.[1];
    const scope = repository === undefined ? '' : `repository:${repository}:pull`;
    const known = this.#tokens.get(given?.replace(/^Bearer /, '') ?? '');
    if (known !== undefined && (scope === '' || known === scope)) return undefined;
    return `Bearer realm="${base}/token",service="loopback"${scope === '' ? '' : `,scope="${scope}"`}`;
  }

  /** A token for the scopes in the query or form; undefined when the credentials are wrong. */
  token(auth: RegistryAuth, request: IncomingMessage, parameters: URLSearchParams): string | undefined {
    if (auth.kind !== 'token') return undefined;
    const refreshed = auth.identityToken !== undefined && parameters.get('refresh_token') === auth.identityToken;
    if (!refreshed && auth.username !== undefined && request.headers.authorization !== basic(auth)) return undefined;
    const token = randomBytes(12).toString('hex');
    this.#tokens.set(token, parameters.get('scope') ?? '');
    return token;
  }

  /** Makes all tokens invalid, as if they had expired. */
  forget(): void {
    this.#tokens.clear();
  }
}

function basic({ username = '', password = '' }: { readonly username?: string; readonly password?: string }): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}
