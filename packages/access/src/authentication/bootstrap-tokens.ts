import { timingSafeEqual } from 'node:crypto';
import { isStatusError, type ResourceClient, StatusReason, timeMs } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import type { Secret } from '@keelson/kinds';
import { authenticatedUser } from './request-credentials.ts';
import type { TokenAuthenticator } from './token-chain.ts';

/** Namespace, type and name prefix of the Secrets that are bootstrap tokens. */
export const bootstrapTokens = {
  namespace: 'kube-system',
  type: 'bootstrap.kubernetes.io/token',
  namePrefix: 'bootstrap-token-',
  pattern: /^([a-z0-9]{6})\.([a-z0-9]{16})$/,
} as const;

const bootstrappersGroup = 'system:bootstrappers';
const extraGroup = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/;

function field({ data }: Secret, key: string): string {
  return Buffer.from(data?.[key] ?? '', 'base64').toString('utf8');
}

function equal(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/**
 * The end of a token's validity in epoch milliseconds; Infinity without one, and 0 (always over) for a time that cannot
 * be parsed.
 */
export function bootstrapTokenEnd(secret: Secret): number {
  const text = field(secret, 'expiration');
  return text === '' ? Number.POSITIVE_INFINITY : (timeMs(text) ?? 0);
}

/** Authenticates the bootstrap tokens of nodes, which are Secrets in kube-system. */
export function bootstrapTokenAuthenticator(secrets: () => ResourceClient<Secret>, clock: Clock): TokenAuthenticator {
  const check = async (id: string, tokenSecret: string) => {
    const { namespace, type, namePrefix } = bootstrapTokens;
    const secret = await secrets()
      .namespace(namespace)
      .get(`${namePrefix}${id}`)
      .catch((error: unknown) => {
        if (!isStatusError(error, StatusReason.NotFound)) throw error;
      });
    if (secret === undefined || secret.type !== type || secret.metadata?.deletionTimestamp) return undefined;
    if (!equal(field(secret, 'token-secret'), tokenSecret) || field(secret, 'token-id') !== id) return undefined;
    const notAfterMs = bootstrapTokenEnd(secret);
    if (notAfterMs <= clock.now() || field(secret, 'usage-bootstrap-authentication') !== 'true') return undefined;
    const groups = field(secret, 'auth-extra-groups')
      .split(',')
      .filter((group) => group !== '');
    const wrong = groups.find((group) => !extraGroup.test(group));
    if (wrong !== undefined)
      throw new Error(
        `the bootstrap token ${id} has the group ${JSON.stringify(wrong)}, which is not a group of joining nodes`,
      );
    const user = authenticatedUser({ name: `system:bootstrap:${id}`, groups: [bootstrappersGroup, ...groups] });
    return { user, ...(Number.isFinite(notAfterMs) ? { notAfterMs } : {}) };
  };
  return {
    name: 'bootstrap tokens',
    authenticate: (token, audiences) => {
      const [, id, tokenSecret] = bootstrapTokens.pattern.exec(token) ?? [];
      return id === undefined || tokenSecret === undefined || audiences.length > 0 ? undefined : check(id, tokenSecret);
    },
  };
}
