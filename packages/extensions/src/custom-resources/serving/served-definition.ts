import { isConditionTrue } from '@keelson/controller-kit';
import type { KindDefinition, KubeObject } from '@keelson/core';
import { statusErrors } from '@keelson/core';
import { equalJson, type ResourceStorage, type ServedKind } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import type { CustomResourceDefinition, CustomResourceDefinitionVersion } from '@keelson/kinds';
import type { ResolveService } from '../../services/resolve-service.ts';
import { completeObject } from '../schema/complete.ts';
import { ruleChecksOf } from '../schema/rules.ts';
import { SchemaNode } from '../schema/schema-node.ts';
import { type Conversion, ConvertedStorage } from './converted-storage.ts';
import { customKind } from './custom-kind.ts';
import { WebhookConversion } from './webhook-conversion.ts';

export interface ServedDefinitionOptions {
  readonly storageOf: (kind: KindDefinition) => ResourceStorage;
  readonly addresses: ResolveService;
  readonly clock: Clock;
}

const conversions = new WeakMap<KindDefinition, Conversion>();

/** The conversion of a version of a definition; undefined for other kinds. */
export function conversionOf(kind: KindDefinition): Conversion | undefined {
  return conversions.get(kind);
}

/** The kinds of one definition, with their storages. */
export class ServedDefinition {
  readonly definition: CustomResourceDefinition;
  /** The versions that are served. */
  readonly kinds: readonly ServedKind[];
  readonly #storages = new Map<string, ConvertedStorage>();
  readonly #webhook: WebhookConversion | undefined;

  /** @param before the same definition before a change, whose storages and watches are reused */
  constructor(
    definition: CustomResourceDefinition,
    before: ServedDefinition | undefined,
    options: ServedDefinitionOptions,
  ) {
    this.definition = definition;
    const { versions, conversion } = definition.spec;
    const terminating = isConditionTrue(definition.status?.conditions, 'Terminating');
    const all = new Map(
      versions.map((version) => [version.name, { version, kind: kindOf(definition, version, terminating) }]),
    );
    const stored = [...all.values()].find(({ version }) => version.storage)?.kind;
    if (stored === undefined) throw new Error('no version is the storage version');
    this.#webhook = conversion?.strategy === 'Webhook' ? new WebhookConversion(definition, options) : undefined;
    const changes = versions.length > 1 || (definition.metadata?.generation ?? 1) > 1;
    const kinds: ServedKind[] = [];
    for (const { version, kind } of all.values()) {
      if (!version.served) continue;
      const use: Conversion = { stored, served: kind, changes, ...this.#conversionTo(version) };
      conversions.set(kind, use);
      let storage = before?.storageOf(version.name);
      if (storage === undefined) storage = new ConvertedStorage(options.storageOf(stored), use);
      else storage.use(use);
      this.#storages.set(version.name, storage);
      kinds.push({ kind, storage });
    }
    this.kinds = kinds;
  }

  /** True when a changed definition has the same served kinds, for example when only conditions have changed. */
  isCurrent(definition: CustomResourceDefinition): boolean {
    const { spec, status, metadata } = this.definition;
    return (
      equalJson(spec, definition.spec) &&
      metadata?.generation === definition.metadata?.generation &&
      equalJson(status?.acceptedNames, definition.status?.acceptedNames) &&
      isConditionTrue(status?.conditions, 'Terminating') ===
        isConditionTrue(definition.status?.conditions, 'Terminating')
    );
  }

  /** Ends the watches of versions that `after` does not serve. */
  endRemoved(after: ServedDefinition | undefined): void {
    for (const [version, storage] of this.#storages) if (after?.storageOf(version) !== storage) storage.end();
    this.close();
  }

  storageOf(version: string): ConvertedStorage | undefined {
    return this.#storages.get(version);
  }

  close(): void {
    this.#webhook?.close();
  }

  #conversionTo({ schema }: CustomResourceDefinitionVersion): Pick<Conversion, 'convert' | 'complete'> {
    const node = new SchemaNode(schema?.openAPIV3Schema ?? {});
    const webhook = this.#webhook;
    return {
      convert: (objects, to) => {
        if (webhook === undefined) return objects.map((object) => ({ ...object, apiVersion: to.apiVersion }));
        return webhook.convert(objects, to);
      },
      complete: ({ kind, apiVersion, metadata, ...fields }) =>
        ({ kind, apiVersion, metadata, ...completeObject(fields, node) }) as KubeObject,
    };
  }
}

function kindOf(
  definition: CustomResourceDefinition,
  version: CustomResourceDefinitionVersion,
  terminating: boolean,
): KindDefinition {
  const kind = customKind(definition, version, ruleChecksOf);
  if (!terminating) return kind;
  const resource = { group: kind.group, resource: kind.names.plural };
  const prepareForCreate = ({ metadata }: KubeObject) => {
    const why = 'create not allowed while custom resource definition is terminating';
    throw statusErrors.forbidden(resource, metadata?.name ?? '', why);
  };
  return Object.freeze({ ...kind, strategy: Object.freeze({ ...kind.strategy, prepareForCreate }) });
}
