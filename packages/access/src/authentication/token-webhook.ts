import { Agent as HttpAgent } from 'node:http';
import { Agent } from 'node:https';
import {
  Backoff,
  type JsonRequest,
  JsonRequestError,
  kubeconfigAccess,
  loadKubeconfig,
  requestJson,
} from '@keelson/client';
import type { AuthenticatedToken, UserInfo } from '@keelson/core';
import { isJsonObject, UsageError } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import { authenticatedUser } from './request-credentials.ts';
import { cachedTokens, type TokenAuthenticator } from './token-chain.ts';

/** A server that reviews tokens. */
export interface TokenWebhook {
  /** A kubeconfig with the address of the server, its authority and the credentials for it. */
  readonly configFile: string;
  /** True: the kubeconfig is that of a cluster, to whose API reviews are posted. Default false. */
  readonly cluster?: boolean;
  /** Version of the TokenReview that is sent. Default `v1`. */
  readonly version?: 'v1' | 'v1beta1';
  /** Time in milliseconds for which answers are cached. Default 120,000. */
  readonly cacheMs?: number;
  /** Timeout of one attempt in milliseconds. Default 10,000. */
  readonly timeoutMs?: number;
}

const defaultCacheMs = 120_000;
const defaultTimeoutMs = 10_000;
/** Number of further attempts when the server does not answer, or answers with 429 or 5xx. */
const retries = 4;
/** Time after the first attempt during which further ones may be started. */
const retryForMs = 30_000;
const firstPauseMs = 500;
const longestPauseMs = 2_000;
const maxConnections = 64;
const option = '--authentication-token-webhook-config-file';
const clusterOption = '--authentication-kubeconfig';

function texts(value: unknown, field: string): string[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value as string[];
  throw new Error(`the answer of the token webhook is invalid: ${field} must be a list of strings`);
}

/** The result of a TokenReview; undefined when the token is not valid. @throws Error for an answer that is no result */
function readReview(
  answer: unknown,
  audiences: readonly string[],
  own: readonly string[],
): AuthenticatedToken | undefined {
  const status = isJsonObject(answer) && answer['kind'] === 'TokenReview' ? answer['status'] : undefined;
  if (!isJsonObject(status)) throw new Error('the answer of the token webhook is not a TokenReview with a status');
  if (status['authenticated'] !== true) {
    if (typeof status['error'] === 'string' && status['error'] !== '')
      throw new Error(`the token webhook answered: ${status['error'].slice(0, 500)}`);
    return undefined;
  }
  const user = isJsonObject(status['user']) ? status['user'] : {};
  const { username, uid, groups, extra } = user;
  if (typeof username !== 'string' || username === '')
    throw new Error('the answer of the token webhook has no status.user.username');
  const extraFields = Object.entries(isJsonObject(extra) ? extra : {}).map(
    ([key, values]) => [key, texts(values, `status.user.extra.${key}`)] as const,
  );
  const answered = texts(status['audiences'], 'status.audiences');
  // A server that ignores audiences accepts the token for the API server only.
  const accepted = new Set(answered.length > 0 ? answered : own);
  const valid = audiences.filter((audience) => accepted.has(audience));
  if (audiences.length > 0 && valid.length === 0) return undefined;
  const found: UserInfo = {
    name: username,
    ...(typeof uid === 'string' && uid !== '' ? { uid } : {}),
    groups: texts(groups, 'status.user.groups'),
    ...(extraFields.length > 0 ? { extra: Object.fromEntries(extraFields) } : {}),
  };
  return { user: authenticatedUser(found), ...(valid.length > 0 ? { audiences: valid } : {}) };
}

function mayRetry(error: unknown): boolean {
  if (!(error instanceof JsonRequestError)) return false;
  return error.unanswered || error.status === 429 || (error.status ?? 0) >= 500;
}

/** The server of a webhook, and the connections to it. */
export interface WebhookTarget extends Required<Pick<JsonRequest, 'url' | 'tls' | 'agent'>> {
  readonly bearer: () => Promise<string | undefined>;
}

/**
 * The address, TLS options and bearer token of a webhook's kubeconfig. Reviews are sent over HTTPS, and over HTTP only
 * to loopback addresses.
 *
 * @param option the option of the file in messages
 * @param reviews path of the reviews below the server; absent: the server is the complete address
 * @throws UsageError
 */
export async function webhookTarget(
  option: string,
  path: string,
  clock: Clock,
  reviews?: string,
): Promise<WebhookTarget> {
  const { options } = await loadKubeconfig({ path })
    .then((config) => kubeconfigAccess(config, { clock }))
    .catch((error: Error) => {
      throw new UsageError(`${option} ${path}: ${error.message}`);
    });
  const { server, ca, clientCertificate, clientKey, tlsServerName, insecureSkipTlsVerify } = options;
  const url = URL.canParse(server) ? new URL(server) : undefined;
  const local = url?.hostname === '127.0.0.1' || url?.hostname === '[::1]' || url?.hostname === 'localhost';
  if (url?.protocol !== 'https:' && !(url?.protocol === 'http:' && local))
    throw new UsageError(`${option} ${path}: the server must be an https address, because credentials are sent to it`);
  const tls: WebhookTarget['tls'] = {
    ...(ca === undefined ? {} : { ca }),
    ...(clientCertificate === undefined ? {} : { cert: clientCertificate }),
    ...(clientKey === undefined ? {} : { key: clientKey }),
    ...(tlsServerName === undefined ? {} : { servername: tlsServerName }),
    ...(insecureSkipTlsVerify ? { rejectUnauthorized: false } : {}),
  };
  const { token, tokenProvider } = options;
  const agent = new (url.protocol === 'https:' ? Agent : HttpAgent)({ keepAlive: true, maxSockets: maxConnections });
  return {
    url: reviews === undefined ? server : server.replace(/\/$/, '') + reviews,
    tls,
    agent,
    bearer: async () => tokenProvider?.() ?? token,
  };
}

/**
 * Authenticates tokens by posting a TokenReview to the server of a kubeconfig. An answer is cached; a server that fails
 * is asked again with increasing pauses, and the token is rejected when it does not recover.
 *
 * @param ownAudiences audiences of this server, for which a token is valid when the answer names none
 * @throws UsageError for a kubeconfig that cannot be used
 */
export async function tokenWebhook(
  { configFile, cluster = false, version = 'v1', cacheMs = defaultCacheMs, timeoutMs = defaultTimeoutMs }: TokenWebhook,
  clock: Clock,
  ownAudiences: readonly string[],
): Promise<TokenAuthenticator & { close(): void }> {
  const { url, tls, agent, bearer } = cluster
    ? await webhookTarget(clusterOption, configFile, clock, `/apis/authentication.k8s.io/${version}/tokenreviews`)
    : await webhookTarget(option, configFile, clock);
  const closing = new AbortController();
  const review = async (token: string, audiences: readonly string[]): Promise<unknown> => {
    const own = await bearer();
    const spec = { token, ...(audiences.length > 0 ? { audiences: [...audiences] } : {}) };
    const body = { apiVersion: `authentication.k8s.io/${version}`, kind: 'TokenReview', metadata: {}, spec };
    const headers = own === undefined ? {} : { Authorization: `Bearer ${own}` };
    return requestJson({ url, body, headers, tls, agent, timeoutMs, clock });
  };
  const authenticate = async (token: string, audiences: readonly string[]) => {
    const backoff = new Backoff(clock, firstPauseMs, longestPauseMs);
    const deadline = clock.monotonic() + retryForMs;
    for (let left = retries; ; left -= 1) {
      try {
        return readReview(await review(token, audiences), audiences, ownAudiences);
      } catch (error) {
        if (left === 0 || !mayRetry(error) || closing.signal.aborted || clock.monotonic() > deadline) throw error;
        await backoff.wait(closing.signal);
      }
    }
  };
  return {
    name: 'webhook',
    authenticate: cachedTokens(authenticate, { clock, successMs: cacheMs, failureMs: cacheMs }),
    close: () => {
      closing.abort();
      agent.destroy();
    },
  };
}
