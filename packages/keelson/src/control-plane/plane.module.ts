import { createInProcessClient } from '@keelson/client';
import {
  type AdmissionPlugin,
  type Authorizer,
  type Clock,
  ClockToken,
  createCachedStorages,
  createContinueTokens,
  createResourceRegistry,
  type KindDefinition,
  type Logger,
  LoggerToken,
  type Metrics,
  MetricsToken,
  moduleOf,
  namespaceLifecycle,
  provide,
  StoreToken,
} from '@keelson/core';
import { Namespace } from '@keelson/kinds';
import {
  AdmissionToken,
  ApiClientToken,
  AuthorizerToken,
  ContinueTokensToken,
  KindsToken,
  RegistryToken,
  StoragesToken,
} from './tokens.ts';

export interface PlaneModuleOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly kinds: readonly KindDefinition[];
  readonly admission: readonly AdmissionPlugin[];
  readonly authorizer: Authorizer;
  readonly tokenSecret: Buffer;
  readonly tokenLifetimeMs?: number;
  /** Namespaces are served, so objects may only be made in those that exist. */
  readonly namespaces: boolean;
}

/** Everything of a plane but the store, which an adapter's module binds. */
export function planeModule(options: PlaneModuleOptions) {
  return moduleOf((binding) => {
    provide(binding, ClockToken, [], () => options.clock);
    provide(binding, LoggerToken, [], () => options.logger);
    provide(binding, MetricsToken, [], () => options.metrics);
    provide(binding, AuthorizerToken, [], () => options.authorizer);
    provide(binding, KindsToken, [], () => options.kinds);
    provide(binding, StoragesToken, [StoreToken, ClockToken, LoggerToken, MetricsToken], (store, clock, logger, metrics) =>
      createCachedStorages({ store, clock, logger, metrics }),
    );
    provide(binding, ContinueTokensToken, [ClockToken, KindsToken], (clock, kinds) =>
      createContinueTokens({
        secret: options.tokenSecret,
        fingerprint: kinds.map((kind) => `${kind.apiVersion}/${kind.kind}`).join(','),
        clock,
        ...(options.tokenLifetimeMs === undefined ? {} : { lifeMs: options.tokenLifetimeMs }),
      }),
    );
    provide(binding, AdmissionToken, [StoragesToken], (storages) => [
      ...(options.namespaces ? [namespaceLifecycle({ kind: Namespace, storage: storages.forKind(Namespace) })] : []),
      ...options.admission,
    ]);
    provide(
      binding,
      RegistryToken,
      [StoragesToken, ContinueTokensToken, ClockToken, LoggerToken, AdmissionToken, KindsToken, AuthorizerToken],
      (storages, tokens, clock, logger, admission, kinds, authorizer) =>
        createResourceRegistry({ storages, tokens, clock, logger, admission, kinds, authorizer }),
    );
    provide(binding, ApiClientToken, [RegistryToken, ClockToken], (registry, clock) =>
      createInProcessClient(registry, { clock }),
    );
  });
}
