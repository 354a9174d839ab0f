import { Informer } from '@keelson/client';
import type { ApiClient, KindDefinition, KubeObject } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import { ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding } from '@keelson/kinds';
import { type CompiledBinding, type CompiledPolicy, compileBinding, compilePolicy } from './compiled-policy.ts';

export interface PolicyIndexOptions {
  readonly client: ApiClient;
  /** Called when policies have changed. */
  readonly onChange: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A policy with its bindings, ordered by name. */
export interface ActivePolicy {
  readonly policy: CompiledPolicy;
  readonly bindings: readonly CompiledBinding[];
}

function byName<T extends { readonly name: string }>(a: T, b: T): number {
  return a.name < b.name ? -1 : 1;
}

/** The policies that have bindings, with compiled expressions. Watches keep them current. */
export class PolicyIndex {
  readonly #policies = new Map<string, CompiledPolicy>();
  readonly #bindings = new Map<string, CompiledBinding>();
  readonly #informers: readonly { start(): Promise<void>; stop(): Promise<void>; readonly synced: boolean }[];
  readonly #onChange: () => void;
  #active: readonly ActivePolicy[] = [];

  constructor({ client, clock, logger, onChange }: PolicyIndexOptions) {
    this.#onChange = onChange;
    const follow = <T extends KubeObject, K>(kind: KindDefinition<T>, keep: (object: T) => K, into: Map<string, K>) => {
      const put = (kept: K, key: string) => {
        into.set(key, kept);
        this.#order();
      };
      return new Informer<T, K>({
        ...{ client: client.resource(kind), keep, clock, logger },
        handlers: {
          added: put,
          updated: (kept, _before, key) => put(kept, key),
          deleted: (_kept, key) => {
            into.delete(key);
            this.#order();
          },
        },
      });
    };
    this.#informers = [
      follow(ValidatingAdmissionPolicy, compilePolicy, this.#policies),
      follow(ValidatingAdmissionPolicyBinding, compileBinding, this.#bindings),
    ];
  }

  #order(): void {
    this.#onChange();
    const byPolicy = new Map<string, CompiledBinding[]>();
    for (const binding of [...this.#bindings.values()].sort(byName)) {
      const known = byPolicy.get(binding.policyName);
      if (known) known.push(binding);
      else byPolicy.set(binding.policyName, [binding]);
    }
    this.#active = [...this.#policies.values()].sort(byName).flatMap((policy) => {
      const bindings = byPolicy.get(policy.name);
      return bindings ? [{ policy, bindings }] : [];
    });
  }

  /** The policies that have bindings. */
  get active(): readonly ActivePolicy[] {
    return this.#active;
  }

  get empty(): boolean {
    return this.#active.length === 0;
  }

  /** True when all policies have been loaded once. */
  get synced(): boolean {
    return this.#informers.every(({ synced }) => synced);
  }

  async start(): Promise<void> {
    await Promise.all(this.#informers.map((informer) => informer.start()));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#informers.map((informer) => informer.stop()));
  }
}
