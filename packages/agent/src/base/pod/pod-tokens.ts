import type { ApiClient } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import { type Pod, ServiceAccount, type TokenRequest } from '@keelson/kinds';
import { uidOf } from './pod-spec.ts';

/** A token as a volume of a pod requests it. */
export interface TokenWish {
  /** Undefined: for the API server. */
  readonly audience: string | undefined;
  readonly expirationSeconds: number;
}

interface IssuedToken {
  readonly token: string;
  /** Monotonic milliseconds. */
  readonly renewAt: number;
  readonly expiresAt: number;
}

const renewalShare = 0.8;
const renewalMs = 24 * 3_600_000;

/**
 * Requests the tokens of the service accounts of pods, and keeps them as long as they need not be renewed. As in
 * kubelet a token is renewed after 80 % of its validity, and after a day at the latest. Validity is measured from the
 * answer on, so that the clocks of server and node may differ.
 */
export class PodTokens {
  readonly #options: { readonly api: ApiClient; readonly clock: Clock; readonly logger: Logger };
  /** By UID of the pod, then by audience and validity. */
  readonly #issued = new Map<string, Map<string, IssuedToken>>();

  constructor(options: { readonly api: ApiClient; readonly clock: Clock; readonly logger: Logger }) {
    this.#options = options;
  }

  /**
   * A valid token. When the server cannot renew it, the previous one is returned until it expires.
   *
   * @throws when there is no valid token
   */
  async token(pod: Pod, wish: TokenWish): Promise<string> {
    const { clock, logger } = this.#options;
    const key = `${wish.expirationSeconds}/${wish.audience ?? ''}`;
    const ofPod = this.#issued.get(uidOf(pod)) ?? new Map<string, IssuedToken>();
    const known = ofPod.get(key);
    if (known !== undefined && clock.monotonic() < known.renewAt) return known.token;
    try {
      const issued = await this.#request(pod, wish);
      ofPod.set(key, issued);
      this.#issued.set(uidOf(pod), ofPod);
      return issued.token;
    } catch (error) {
      if (known !== undefined && clock.monotonic() < known.expiresAt) {
        const { namespace, name } = pod.metadata ?? {};
        logger.warn('the token of a pod was not renewed', {
          component: 'tokens',
          pod: `${namespace}/${name}`,
          err: error,
        });
        return known.token;
      }
      throw new Error(`failed to fetch token: ${error instanceof Error ? error.message : String(error)}`, {
        cause: error,
      });
    }
  }

  /** To be called when the pod is gone. */
  forget(uid: string): void {
    this.#issued.delete(uid);
  }

  async #request(pod: Pod, { audience, expirationSeconds }: TokenWish): Promise<IssuedToken> {
    const { api, clock } = this.#options;
    const { namespace = '', name = '' } = pod.metadata ?? {};
    const request: TokenRequest = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: {},
      spec: {
        audiences: audience ? [audience] : [],
        expirationSeconds,
        boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid: uidOf(pod) },
      },
    };
    const requestedAt = clock.monotonic();
    const answer = (await api
      .resource(ServiceAccount)
      .namespace(namespace)
      .createSubresource(pod.spec.serviceAccountName || 'default', 'token', request)) as TokenRequest;
    const token = answer.status?.token ?? '';
    if (token === '') throw new Error('the server returned no token');
    const validMs = Number(answer.spec.expirationSeconds ?? expirationSeconds) * 1000;
    return {
      token,
      renewAt: requestedAt + Math.min(validMs * renewalShare, renewalMs),
      expiresAt: requestedAt + validMs,
    };
  }
}
