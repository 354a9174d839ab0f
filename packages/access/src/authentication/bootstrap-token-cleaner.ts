import type { ControllerDefinition } from '@keelson/controller-kit';
import { isStatusError, StatusReason } from '@keelson/core';
import { Secret } from '@keelson/kinds';
import { bootstrapTokenEnd, bootstrapTokens } from './bootstrap-tokens.ts';

/** Longest pause before a token is considered again; timers of Node.js are limited to 24 days. */
const maxPauseMs = 86_400_000;

/** Deletes bootstrap tokens after the end of their validity. */
export const bootstrapTokenCleaner: ControllerDefinition<Secret> = {
  name: 'token-cleaner-controller',
  kind: Secret,
  select: { fieldSelector: `metadata.namespace=${bootstrapTokens.namespace},type=${bootstrapTokens.type}` },
  reconcile: async (secret, { client, clock, logger }) => {
    const leftMs = bootstrapTokenEnd(secret) - clock.now();
    if (leftMs > 0) return Number.isFinite(leftMs) ? { againAfterMs: Math.min(leftMs, maxPauseMs) } : undefined;
    const { name = '', uid = '', resourceVersion = '' } = secret.metadata ?? {};
    const secrets = client.resource(Secret).namespace(bootstrapTokens.namespace);
    try {
      await secrets.delete(name, { preconditions: { uid, resourceVersion } });
      logger.info('an expired bootstrap token was deleted', { component: 'bootstrap-token-cleaner', secret: name });
    } catch (error) {
      if (!isStatusError(error, StatusReason.NotFound)) throw error;
    }
    return undefined;
  },
};
