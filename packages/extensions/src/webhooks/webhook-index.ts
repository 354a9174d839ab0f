import { Informer } from '@keelson/client';
import {
  type ApiClient,
  type KindDefinition,
  type KubeObject,
  type LabelSelector,
  labelSelectorOf,
} from '@keelson/core';
import type { Clock, Logger, Service } from '@keelson/core/runtime';
import { MutatingWebhookConfiguration, ValidatingWebhookConfiguration, type webhooksV1 } from '@keelson/kinds';
import { MatchConditions } from '../admission/expressions.ts';

/** The fields of validating and mutating webhooks. */
export type WebhookFields = webhooksV1.ValidatingWebhook & Pick<webhooksV1.MutatingWebhook, 'reinvocationPolicy'>;

/** A webhook with its parsed selectors. */
export interface Webhook {
  readonly fields: WebhookFields;
  readonly configuration: string;
  readonly namespaces: LabelSelector;
  readonly objects: LabelSelector;
  /** The match conditions of the webhook, if it has any. */
  readonly conditions: MatchConditions | undefined;
}

interface Configuration extends KubeObject {
  readonly webhooks?: WebhookFields[];
}

export interface WebhookIndexOptions {
  readonly client: ApiClient;
  /** Called when webhooks have changed. */
  readonly onChange: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * The validating or mutating webhooks of the cluster, ordered by the names of their configurations as in Kubernetes.
 */
class WebhookList {
  readonly #byConfiguration = new Map<string, readonly Webhook[]>();
  readonly #onChange: () => void;
  #ordered: readonly Webhook[] = [];
  readonly informer: Pick<Informer<Configuration>, 'start' | 'stop' | 'synced'>;

  constructor(kind: KindDefinition<Configuration>, { client, clock, logger, onChange }: WebhookIndexOptions) {
    this.#onChange = onChange;
    const put = (webhooks: readonly Webhook[], key: string) => {
      this.#byConfiguration.set(key, webhooks);
      this.#order();
    };
    this.informer = new Informer<Configuration, readonly Webhook[]>({
      client: client.resource(kind),
      keep: webhooksOf,
      clock,
      logger,
      handlers: {
        added: put,
        updated: (webhooks, _before, key) => put(webhooks, key),
        deleted: (_webhooks, key) => {
          this.#byConfiguration.delete(key);
          this.#order();
        },
      },
    });
  }

  get ordered(): readonly Webhook[] {
    return this.#ordered;
  }

  #order(): void {
    this.#onChange();
    const sorted = [...this.#byConfiguration].sort(([a], [b]) => (a < b ? -1 : 1));
    this.#ordered = sorted.flatMap(([, webhooks]) => webhooks);
  }
}

function webhooksOf({ metadata, webhooks = [] }: Configuration): readonly Webhook[] {
  return webhooks.map((fields) => ({
    fields,
    configuration: metadata?.name ?? '',
    namespaces: labelSelectorOf(fields.namespaceSelector ?? {}),
    objects: labelSelectorOf(fields.objectSelector ?? {}),
    conditions: fields.matchConditions?.length
      ? new MatchConditions(fields.matchConditions, fields.failurePolicy)
      : undefined,
  }));
}

/** All webhooks of the cluster, updated by watches. */
export class WebhookIndex implements Service {
  readonly name = 'admission-webhooks';
  readonly #mutating: WebhookList;
  readonly #validating: WebhookList;

  constructor(options: WebhookIndexOptions) {
    this.#mutating = new WebhookList(MutatingWebhookConfiguration, options);
    this.#validating = new WebhookList(ValidatingWebhookConfiguration, options);
  }

  get mutating(): readonly Webhook[] {
    return this.#mutating.ordered;
  }

  get validating(): readonly Webhook[] {
    return this.#validating.ordered;
  }

  get empty(): boolean {
    return this.mutating.length === 0 && this.validating.length === 0;
  }

  /** True when all webhooks have been loaded once. */
  get synced(): boolean {
    return this.#mutating.informer.synced && this.#validating.informer.synced;
  }

  async start(): Promise<void> {
    await Promise.all([this.#mutating.informer.start(), this.#validating.informer.start()]);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#mutating.informer.stop(), this.#validating.informer.stop()]);
  }
}
