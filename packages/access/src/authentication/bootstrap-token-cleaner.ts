import { Informer, WorkQueue, type WorkResult } from '@keelson/client';
import { type ApiClient, isStatusError, StatusReason } from '@keelson/core';
import type { Clock, Logger, Service } from '@keelson/core/runtime';
import { Secret } from '@keelson/kinds';
import { bootstrapTokenEnd, bootstrapTokens } from './bootstrap-tokens.ts';

export interface BootstrapTokenCleanerOptions {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Longest pause before a token is considered again; timers of Node.js are limited to 24 days. */
const maxPauseMs = 86_400_000;

/** Deletes bootstrap tokens after the end of their validity. */
export class BootstrapTokenCleaner implements Service {
  readonly name = 'token-cleaner-controller';
  readonly #options: BootstrapTokenCleanerOptions;
  readonly #informer: Informer<Secret, string>;
  readonly #queue: WorkQueue;

  constructor(options: BootstrapTokenCleanerOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({ ...options, name: this.name, workers: 1, work: (name) => this.#consider(name) });
    const consider = (name: string) => this.#queue.add(name);
    this.#informer = new Informer({
      ...options,
      client: this.#secrets(),
      fieldSelector: `type=${bootstrapTokens.type}`,
      keep: ({ metadata }) => metadata?.name ?? '',
      handlers: { added: consider, updated: consider },
    });
  }

  start(): Promise<void> {
    return this.#informer.start();
  }

  async stop(): Promise<void> {
    await this.#informer.stop();
    await this.#queue.stop();
  }

  #secrets() {
    return this.#options.client.resource(Secret).namespace(bootstrapTokens.namespace);
  }

  async #consider(name: string): Promise<WorkResult> {
    const { clock, logger } = this.#options;
    const secret = await this.#secrets().get(name).catch(missingIsUndefined);
    if (secret?.type !== bootstrapTokens.type) return undefined;
    const leftMs = bootstrapTokenEnd(secret) - clock.now();
    if (leftMs > 0) return Number.isFinite(leftMs) ? { againAfterMs: Math.min(leftMs, maxPauseMs) } : undefined;
    const { uid = '', resourceVersion = '' } = secret.metadata ?? {};
    await this.#secrets().delete(name, { preconditions: { uid, resourceVersion } }).catch(missingIsUndefined);
    logger.info('an expired bootstrap token was deleted', { component: this.name, secret: name });
    return undefined;
  }
}

function missingIsUndefined(error: unknown): undefined {
  if (!isStatusError(error, StatusReason.NotFound)) throw error;
}
