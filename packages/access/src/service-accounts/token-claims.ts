import type { UserInfo } from '@keelson/core';
import type { ObjectIdentity } from './existing-objects.ts';

/** The claim `kubernetes.io` of a token. */
export interface KubernetesClaims {
  readonly namespace: string;
  readonly serviceaccount: ObjectIdentity;
  readonly pod?: ObjectIdentity;
  readonly secret?: ObjectIdentity;
  /**
   * The node to which the token is bound, or the node of the pod. Without `uid` when the Node of the pod did not exist.
   */
  readonly node?: { readonly name: string; readonly uid?: string };
  /** Epoch seconds after which the use of the token is reported. */
  readonly warnafter?: number;
}

/** The claims of a token of a service account. Times are epoch seconds. */
export interface TokenClaims {
  readonly iss: string;
  readonly sub: string;
  readonly aud: readonly string[];
  readonly iat: number;
  readonly nbf: number;
  readonly exp: number;
  readonly jti: string;
  readonly 'kubernetes.io': KubernetesClaims;
}

const userPrefix = 'system:serviceaccount:';
const groupPrefix = 'system:serviceaccounts';
const extraPrefix = 'authentication.kubernetes.io/';

/** The user name of a service account. */
export function accountUserName(namespace: string, name: string): string {
  return `${userPrefix}${namespace}:${name}`;
}

/** The user of a service account, without the extra fields that a token adds. */
export function userOfAccount(namespace: string, name: string, uid: string): UserInfo {
  return {
    name: accountUserName(namespace, name),
    uid,
    groups: [groupPrefix, `${groupPrefix}:${namespace}`, 'system:authenticated'],
  };
}

/** The user of a token: see docs/how-to/use-service-accounts.md#identity. */
export function userOfClaims({ jti, 'kubernetes.io': claims }: TokenClaims): UserInfo {
  const { namespace, serviceaccount, pod, node } = claims;
  const extra: [string, string | undefined][] = [
    ['credential-id', `JTI=${jti}`],
    ['pod-name', pod?.name],
    ['pod-uid', pod?.uid],
    ['node-name', node?.name],
    ['node-uid', node?.uid],
  ];
  return {
    ...userOfAccount(namespace, serviceaccount.name, serviceaccount.uid),
    extra: Object.fromEntries(
      extra.flatMap(([key, value]) => (value === undefined ? [] : [[extraPrefix + key, [value]]])),
    ),
  };
}

function isReference(value: unknown): value is ObjectIdentity {
  const { name, uid } = (value ?? {}) as Partial<ObjectIdentity>;
  return typeof name === 'string' && name !== '' && (uid === undefined || typeof uid === 'string');
}

/**
 * The claims of a payload whose signature is verified; undefined when it is not that of a token of a service account,
 * because the same key may also sign other tokens.
 */
export function tokenClaims(payload: Readonly<Record<string, unknown>>): TokenClaims | undefined {
  const { iss, sub, aud, iat, nbf, exp, jti, 'kubernetes.io': kubernetes } = payload;
  const audiences = typeof aud === 'string' ? [aud] : aud;
  if (!Array.isArray(audiences) || audiences.length === 0 || audiences.some((item) => typeof item !== 'string'))
    return undefined;
  if (typeof iss !== 'string' || typeof jti !== 'string') return undefined;
  if (typeof iat !== 'number' || typeof nbf !== 'number' || typeof exp !== 'number') return undefined;
  const claims = kubernetes as Partial<KubernetesClaims> | null | undefined;
  const { namespace, serviceaccount, pod, secret, node } = claims ?? {};
  if (typeof namespace !== 'string' || !isReference(serviceaccount) || serviceaccount.uid === undefined)
    return undefined;
  if ([pod, secret, node].some((reference) => reference !== undefined && !isReference(reference))) return undefined;
  if (sub !== accountUserName(namespace, serviceaccount.name)) return undefined;
  return { iss, sub, aud: audiences as string[], iat, nbf, exp, jti, 'kubernetes.io': claims as KubernetesClaims };
}
