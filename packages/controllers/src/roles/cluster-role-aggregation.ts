import { Informer, WorkQueue } from '@keelson/client';
import { isStatusError, type LabelSelector, labelSelectorOf, StatusReason } from '@keelson/core';
import type { Service } from '@keelson/core/runtime';
import { ClusterRole, type PolicyRule } from '@keelson/kinds';
import type { ControllerOptions } from '../controller-options.ts';

/** The part of a cluster role that is kept in memory. */
interface KeptRole {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly rules: readonly PolicyRule[];
  /** Absent for a role that collects no rules. */
  readonly selectors?: readonly LabelSelector[];
}

function keepRole({ metadata, rules = [], aggregationRule }: ClusterRole): KeptRole {
  return {
    name: metadata?.name ?? '',
    labels: metadata?.labels ?? {},
    rules,
    ...(aggregationRule
      ? { selectors: (aggregationRule.clusterRoleSelectors ?? []).map((selector) => labelSelectorOf(selector)) }
      : {}),
  };
}

/** Sets the rules of every cluster role with an aggregation rule to those of the cluster roles that it selects. */
export class ClusterRoleAggregation implements Service {
  readonly name = 'clusterrole-aggregation-controller';
  readonly #options: ControllerOptions;
  readonly #roles: Informer<ClusterRole, KeptRole>;
  readonly #queue: WorkQueue;

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({ ...options, name: this.name, work: (name) => this.#collect(name) });
    const changed = () => this.#addAll();
    this.#roles = new Informer({
      ...options,
      client: options.client.resource(ClusterRole),
      keep: keepRole,
      handlers: { added: changed, updated: changed, deleted: changed },
    });
  }

  async start(): Promise<void> {
    await this.#roles.start();
    this.#addAll();
  }

  async stop(): Promise<void> {
    await this.#roles.stop();
    await this.#queue.stop();
  }

  /** Any change of a role may concern every role that collects rules; the queue combines bursts. */
  #addAll(): void {
    if (!this.#roles.synced) return;
    for (const { name, selectors } of this.#roles.values()) if (selectors !== undefined) this.#queue.add(name);
  }

  async #collect(name: string): Promise<undefined> {
    const role = this.#roles.get(name);
    if (role?.selectors === undefined) return;
    const rules = this.#collectedBy(role, role.selectors);
    if (JSON.stringify(rules) === JSON.stringify(role.rules)) return;
    try {
      await this.#options.client.resource(ClusterRole).patch(name, 'merge', { rules });
    } catch (error) {
      if (!isStatusError(error, StatusReason.NotFound)) throw error;
    }
  }

  /** The rules in the order of selectors and names, each once. */
  #collectedBy(role: KeptRole, selectors: readonly LabelSelector[]): PolicyRule[] {
    const sorted = [...this.#roles.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    const collected = new Map<string, PolicyRule>();
    for (const selector of selectors) {
      for (const { name, labels, rules } of sorted) {
        if (name === role.name || !selector.matches(labels)) continue;
        for (const rule of rules) collected.set(JSON.stringify(rule), rule);
      }
    }
    return [...collected.values()];
  }
}
