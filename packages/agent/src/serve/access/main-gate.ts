import type { ApiClient } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { ServerConfig } from '../../base/config/agent-config.ts';
import type { Gate } from '../http/router.ts';
import { accessReviews, alwaysAllow } from './access-reviews.ts';
import { createGate } from './gate.ts';
import { identifier } from './identify.ts';
import { tokenReviews } from './token-reviews.ts';

export interface MainGateOptions {
  readonly config: Pick<ServerConfig, 'anonymousAuth' | 'clientCaFile' | 'tokenWebhook' | 'accessWebhook'>;
  readonly nodeName: string;
  /** Answers reviews; undefined only when the options need none. */
  readonly api: Pick<ApiClient, 'resource'> | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

function needed<T>(api: T | undefined, what: string): T {
  if (api === undefined) throw new Error(`${what} without an API server`);
  return api;
}

/** The gate of the main port, from the options for authentication and authorization. */
export function mainGate({ config, nodeName, api, clock, logger }: MainGateOptions): Gate {
  const { anonymousAuth, clientCaFile, tokenWebhook, accessWebhook } = config;
  const reviewToken = tokenWebhook && tokenReviews({ api: needed(api, 'token reviews'), ...tokenWebhook, clock });
  return createGate({
    nodeName,
    identify: identifier({ anonymousAuth, clientCertificates: clientCaFile !== undefined, reviewToken, logger }),
    authorize:
      accessWebhook === undefined
        ? alwaysAllow
        : accessReviews({ api: needed(api, 'access reviews'), nodeName, ...accessWebhook, clock, logger }),
  });
}
