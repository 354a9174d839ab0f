import { Informer, type InformerHandlers } from '@keelson/client';
import type { ApiClient } from '@keelson/core';
import type { Clock, Logger, Service } from '@keelson/core/runtime';
import { ClusterRole, ClusterRoleBinding, type PolicyRule, Role, RoleBinding } from '@keelson/kinds';
import { type KeptBinding, keepBinding, type RbacIndex } from './rbac-index.ts';

export interface RbacInformersOptions {
  readonly client: ApiClient;
  readonly index: RbacIndex;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Keeps the index equal to the roles and bindings of the API. */
export class RbacInformers implements Service {
  readonly name = 'rbac';
  #loaded = false;
  readonly #informers: readonly Pick<Informer<Role>, 'start' | 'stop' | 'synced'>[];

  constructor({ client, index, clock, logger }: RbacInformersOptions) {
    const shared = { clock, logger };
    const roles: InformerHandlers<readonly PolicyRule[]> = {
      added: (rules, key) => index.putRole(key, rules),
      updated: (rules, _before, key) => index.putRole(key, rules),
      deleted: (_rules, key) => index.removeRole(key),
    };
    // The index identifies a binding by the object that was added, so that same object must be removed. A deleted event
    // may carry a later state of the binding.
    const added = new Map<string, KeptBinding>();
    const put = (kind: string) => (binding: KeptBinding, key: string) => {
      const id = `${kind} ${key}`;
      const before = added.get(id);
      if (before !== undefined) index.removeBinding(before);
      added.set(id, binding);
      index.addBinding(binding);
    };
    const bindings = (kind: string): InformerHandlers<KeptBinding> => ({
      added: put(kind),
      updated: (binding, _before, key) => put(kind)(binding, key),
      deleted: (_binding, key) => {
        const before = added.get(`${kind} ${key}`);
        if (before === undefined) return;
        added.delete(`${kind} ${key}`);
        index.removeBinding(before);
      },
    });
    const keepRules = ({ rules = [] }: Role | ClusterRole) => rules;
    this.#informers = [
      new Informer({ ...shared, client: client.resource(Role), keep: keepRules, handlers: roles }),
      new Informer({ ...shared, client: client.resource(ClusterRole), keep: keepRules, handlers: roles }),
      new Informer({
        ...shared,
        client: client.resource(RoleBinding),
        keep: keepBinding,
        handlers: bindings('RoleBinding'),
      }),
      new Informer({
        ...shared,
        client: client.resource(ClusterRoleBinding),
        keep: keepBinding,
        handlers: bindings('ClusterRoleBinding'),
      }),
    ];
  }

  /** True when all roles and bindings have been loaded once. */
  get loaded(): boolean {
    this.#loaded ||= this.#informers.every(({ synced }) => synced);
    return this.#loaded;
  }

  async start(): Promise<void> {
    await Promise.all(this.#informers.map((informer) => informer.start()));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#informers.map((informer) => informer.stop()));
  }
}
