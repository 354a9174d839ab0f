import type { ControllerOptions } from '@keelson/controllers';
import type { KindDefinition } from '@keelson/core';
import type { ResourceRegistry } from '@keelson/core/internal';
import type { Service } from '@keelson/core/runtime';
import { CheckedDefinition, CustomResources, serviceResolver } from '@keelson/extensions';
import type { PlaneStores } from '../storage/plane-stores.ts';

/** Replaces the kind CustomResourceDefinition by a definition with further checks. Returns other kinds unchanged. */
export function completeKind(kind: KindDefinition): KindDefinition {
  return kind.apiVersion === CheckedDefinition.apiVersion && kind.kind === CheckedDefinition.kind
    ? CheckedDefinition
    : kind;
}

/** Serves the kinds of CustomResourceDefinitions. */
export function customResources(
  stores: PlaneStores,
  options: Pick<ControllerOptions, 'client' | 'clock' | 'logger'>,
  registry: () => ResourceRegistry,
): Service {
  return new CustomResources({
    ...options,
    registry,
    storageOf: (kind) => stores.forKind(kind),
    severalServers: () => stores.of(CheckedDefinition).capabilities.multiWriter,
    addresses: serviceResolver(options.client),
  });
}
