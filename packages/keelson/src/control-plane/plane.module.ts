import { createInProcessClient } from '@keelson/client';
import {
  type AdmissionPlugin,
  type Authorizer,
  type Clock,
  ClockToken,
  createResourceRegistry,
  type KindDefinition,
  type Logger,
  LoggerToken,
  type Metrics,
  MetricsToken,
  moduleOf,
  namespaceLifecycle,
  provide,
} from '@keelson/core';
import { Namespace } from '@keelson/kinds';
import type { PlaneStores } from '../storage/plane-stores.ts';
import { AdmissionToken, ApiClientToken, AuthorizerToken, KindsToken, PlaneStoresToken, RegistryToken } from './tokens.ts';

export interface PlaneModuleOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly kinds: readonly KindDefinition[];
  readonly admission: readonly AdmissionPlugin[];
  readonly authorizer: Authorizer;
  readonly stores: PlaneStores;
  /** Namespaces are served, so objects may only be made in those that exist. */
  readonly namespaces: boolean;
}

/** How the parts of a plane hang together. */
export function planeModule(options: PlaneModuleOptions) {
  return moduleOf((binding) => {
    provide(binding, ClockToken, [], () => options.clock);
    provide(binding, LoggerToken, [], () => options.logger);
    provide(binding, MetricsToken, [], () => options.metrics);
    provide(binding, AuthorizerToken, [], () => options.authorizer);
    provide(binding, KindsToken, [], () => options.kinds);
    provide(binding, PlaneStoresToken, [], () => options.stores);
    provide(binding, AdmissionToken, [PlaneStoresToken], (storages) => [
      ...(options.namespaces ? [namespaceLifecycle({ kind: Namespace, storage: storages.forKind(Namespace) })] : []),
      ...options.admission,
    ]);
    provide(
      binding,
      RegistryToken,
      [PlaneStoresToken, ClockToken, LoggerToken, AdmissionToken, KindsToken, AuthorizerToken],
      (storages, clock, logger, admission, kinds, authorizer) => {
        const tokens = (kind: KindDefinition) => storages.tokensOf(kind);
        return createResourceRegistry({ storages, tokens, clock, logger, admission, kinds, authorizer });
      },
    );
    provide(binding, ApiClientToken, [RegistryToken, ClockToken], (registry, clock) =>
      createInProcessClient(registry, { clock }),
    );
  });
}
