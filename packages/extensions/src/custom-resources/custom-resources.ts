import { Informer } from '@keelson/client';
import { isConditionTrue } from '@keelson/controller-kit';
import { type ApiClient, isStatusError, type KindDefinition } from '@keelson/core';
import { equalJson, type ResourceRegistry, type ResourceStorage, type ServedKind } from '@keelson/core/internal';
import type { Clock, Logger, Service } from '@keelson/core/runtime';
import { CustomResourceDefinition } from '@keelson/kinds';
import type { ResolveService } from '../services/resolve-service.ts';
import { DefinitionCleanup } from './cleanup.ts';
import { withApproval } from './definition/api-approval.ts';
import { compareVersions, usedNames, withEstablished, withNames } from './serving/names.ts';
import { ServedDefinition } from './serving/served-definition.ts';

export interface CustomResourcesOptions {
  readonly client: ApiClient;
  readonly registry: () => ResourceRegistry;
  readonly storageOf: (kind: KindDefinition) => ResourceStorage;
  readonly addresses: ResolveService;
  /**
   * True when several servers use the same store. A new kind is then established only after the other servers have had
   * time to serve it.
   */
  readonly severalServers: () => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Time that other servers need to observe a new definition. */
const otherServersMs = 250;
const retryMs = 500;

/**
 * Serves the kinds that CustomResourceDefinitions declare. Every server watches the definitions itself, so that a
 * change takes effect on all servers. The first server that processes a change writes names and conditions and performs
 * the cleanup after a deletion. The other servers have nothing left to do.
 */
export class CustomResources implements Service {
  readonly name = 'custom-resources';
  readonly #options: CustomResourcesOptions;
  readonly #logger: Logger;
  readonly #informer: Informer<CustomResourceDefinition>;
  readonly #cleanup: DefinitionCleanup;
  readonly #served = new Map<string, ServedDefinition>();
  /** Names of definitions whose status must be checked. */
  readonly #pending = new Set<string>();
  readonly #timers = new Map<string, () => void>();
  #working: Promise<void> | undefined;
  #stopped = false;

  constructor(options: CustomResourcesOptions) {
    this.#options = options;
    this.#logger = options.logger.child({ component: 'custom-resources' });
    const { client, clock } = options;
    this.#cleanup = new DefinitionCleanup(options);
    this.#informer = new Informer({
      client: client.resource(CustomResourceDefinition),
      keep: (definition) => definition,
      handlers: {
        added: (definition) => this.#changed(definition),
        updated: (definition) => this.#changed(definition),
        deleted: (definition) => this.#deleted(definition),
      },
      clock,
      logger: this.#logger,
    });
  }

  /** Resolves when the kinds of all established definitions are served. */
  async start(): Promise<void> {
    await this.#informer.start();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const cancel of this.#timers.values()) cancel();
    this.#cleanup.stop();
    await this.#informer.stop();
    await this.#working;
    for (const served of this.#served.values()) served.close();
  }

  #changed(definition: CustomResourceDefinition): void {
    const name = definition.metadata?.name ?? '';
    this.#serve(name, definition);
    this.#examine(name);
  }

  #deleted(definition: CustomResourceDefinition): void {
    const name = definition.metadata?.name ?? '';
    this.#serve(name, undefined);
    this.#timers.get(name)?.();
    // The names of the deleted definition become available for other definitions of the group.
    for (const other of this.#informer.values())
      if (other.spec.group === definition.spec.group && other.metadata?.name) this.#examine(other.metadata.name);
  }

  /** Registers all versions of a definition in one step, in the order in which clients prefer them. */
  #serve(name: string, definition: CustomResourceDefinition | undefined): void {
    const registry = this.#options.registry();
    const before = this.#served.get(name);
    const after = definition && isServed(definition) ? this.#servedDefinition(definition, before) : undefined;
    const group = (definition ?? before?.definition)?.spec.group;
    if (before === undefined && after === undefined) return;
    if (after?.kinds === before?.kinds) return;
    const own = [...this.#served.values()].filter(({ definition: { spec } }) => spec.group === group);
    const kinds = new Set(own.flatMap((served) => served.kinds));
    const others = own.filter((served) => served !== before).flatMap((served) => served.kinds);
    try {
      registry.replace(
        [...kinds].map(({ kind }) => kind),
        sortedKinds([...others, ...(after?.kinds ?? [])]),
      );
    } catch (err) {
      this.#logger.error('a custom resource definition cannot be served', { name, err });
      return;
    }
    if (after === undefined) this.#served.delete(name);
    else this.#served.set(name, after);
    if (before !== undefined && before !== after) before.endRemoved(after);
  }

  #servedDefinition(
    definition: CustomResourceDefinition,
    before: ServedDefinition | undefined,
  ): ServedDefinition | undefined {
    const same = before?.definition.metadata?.uid === definition.metadata?.uid ? before : undefined;
    if (same?.isCurrent(definition)) return same;
    try {
      return new ServedDefinition(definition, same, this.#options);
    } catch (err) {
      this.#logger.error('a custom resource definition cannot be served', { name: definition.metadata?.name, err });
      return before;
    }
  }

  #examine(name: string, afterMs = 0): void {
    if (this.#stopped) return;
    if (afterMs === 0) {
      this.#pending.add(name);
      this.#startWork();
      return;
    }
    this.#timers.get(name)?.();
    const cancel = this.#options.clock.after(afterMs, () => {
      this.#timers.delete(name);
      this.#examine(name);
    });
    this.#timers.set(name, cancel);
  }

  #startWork(): void {
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
      // A definition may have been added just after the loop ended.
      if (this.#pending.size > 0 && !this.#stopped) this.#startWork();
    });
  }

  async #work(): Promise<void> {
    for (let [name] = this.#pending; name !== undefined && !this.#stopped; [name] = this.#pending) {
      this.#pending.delete(name);
      const definition = this.#informer.get(name);
      if (definition === undefined) continue;
      try {
        const againMs = await this.#reconcile(definition);
        if (againMs !== undefined) this.#examine(name, againMs);
      } catch (err) {
        // A conflict means that another server has already written the definition. The watch will report its change.
        if (isStatusError(err) && (err.code === 409 || err.code === 404)) continue;
        this.#logger.warn('the status of a custom resource definition was not written', { name, err });
        this.#examine(name, retryMs);
      }
    }
  }

  /** Writes names and conditions. Returns the delay until the definition must be checked again. */
  async #reconcile(definition: CustomResourceDefinition): Promise<number | undefined> {
    const { clock } = this.#options;
    const { status = {}, metadata } = definition;
    if (metadata?.deletionTimestamp !== undefined) return this.#cleanup.run(definition);
    const named = equalJson(status.acceptedNames, definition.spec.names) ? status : this.#withNames(definition);
    const approved = withApproval(named, definition, clock);
    if (!equalJson(approved, status)) {
      await this.#write(definition, this.#options.severalServers() ? approved : established(approved, clock));
      return undefined;
    }
    if (!isConditionTrue(status.conditions, 'NamesAccepted') || isConditionTrue(status.conditions, 'Established'))
      return undefined;
    const condition = status.conditions?.find(({ type }) => type === 'NamesAccepted');
    const since = Date.parse(condition?.lastTransitionTime ?? '') || 0;
    const name = metadata?.name ?? '';
    if (this.#options.severalServers() && !this.#timers.has(`${name} waited`) && clock.now() - since < 2000) {
      this.#timers.set(`${name} waited`, () => this.#timers.delete(`${name} waited`));
      return otherServersMs;
    }
    this.#timers.delete(`${name} waited`);
    await this.#write(definition, withEstablished(status, clock));
    return undefined;
  }

  #withNames(definition: CustomResourceDefinition) {
    const { group } = definition.spec;
    const others = [...this.#informer.values()].filter(
      (other) => other.spec.group === group && other.metadata?.name !== definition.metadata?.name,
    );
    const own = new Set([...this.#served.values()].flatMap(({ kinds }) => kinds.map(({ kind }) => kind)));
    const builtin = this.#options
      .registry()
      .kinds()
      .filter((kind) => kind.group === group && !own.has(kind));
    const names = builtin.map(({ names: { plural, singular, shortNames }, kind, listKind }) => ({
      ...{ plural, singular, kind, listKind, shortNames: [...shortNames] },
    }));
    return withNames(definition, usedNames(others, names), this.#options.clock);
  }

  async #write(definition: CustomResourceDefinition, status: CustomResourceDefinition['status']): Promise<void> {
    const changed = { ...definition, status } as CustomResourceDefinition;
    const { client } = this.#options;
    await client
      .resource(CustomResourceDefinition)
      .updateSubresource(definition.metadata?.name ?? '', 'status', changed);
  }
}

/** Without other servers, a definition is established as soon as its names are accepted. */
function established(status: NonNullable<CustomResourceDefinition['status']>, clock: Clock) {
  return isConditionTrue(status.conditions, 'NamesAccepted') ? withEstablished(status, clock) : status;
}

/** As kube-apiserver: an established definition remains served when a later change of names is rejected. */
function isServed({ status }: CustomResourceDefinition): boolean {
  return isConditionTrue(status?.conditions, 'Established') || isConditionTrue(status?.conditions, 'NamesAccepted');
}

function sortedKinds(kinds: readonly ServedKind[]): ServedKind[] {
  return [...kinds].sort((a, b) => compareVersions(a.kind.version, b.kind.version));
}
