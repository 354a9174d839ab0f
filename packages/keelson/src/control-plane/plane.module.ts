import { createInProcessClient } from '@keelson/client';
import {
  type AdmissionPlugin,
  type AuthenticateToken,
  type Authorizer,
  type BindingModule,
  type Clock,
  ClockToken,
  createResourceRegistry,
  type KindDefinition,
  type Logger,
  LoggerToken,
  type Metrics,
  MetricsToken,
  namespaceLifecycle,
} from '@keelson/core';
import { Namespace, Node, Pod } from '@keelson/kinds';
import { nodeRestriction } from '../auth/node-restriction.ts';
import type { PlaneStores } from '../storage/plane-stores.ts';
import {
  AdmissionToken,
  ApiClientToken,
  AuthorizerToken,
  KindsToken,
  PlaneStoresToken,
  RegistryToken,
} from './tokens.ts';

export interface PlaneModuleOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly kinds: readonly KindDefinition[];
  readonly admission: readonly AdmissionPlugin[];
  readonly authorizer: Authorizer;
  /** Undefined: no token is known. */
  readonly authenticateToken: AuthenticateToken | undefined;
  readonly stores: PlaneStores;
  /**
   * Namespaces and nodes are served: objects may only be made in namespaces that exist, and nodes keep to what is
   * theirs.
   */
  readonly namespaces: boolean;
}

/** How the parts of a plane hang together. */
export function planeModule(options: PlaneModuleOptions): BindingModule {
  return (bind) => {
    bind(ClockToken, [], () => options.clock);
    bind(LoggerToken, [], () => options.logger);
    bind(MetricsToken, [], () => options.metrics);
    bind(AuthorizerToken, [], () => options.authorizer);
    bind(KindsToken, [], () => options.kinds);
    bind(PlaneStoresToken, [], () => options.stores);
    bind(AdmissionToken, [PlaneStoresToken], (storages) => [
      ...(options.namespaces
        ? [
            namespaceLifecycle({ kind: Namespace, storage: storages.forKind(Namespace) }),
            nodeRestriction({ nodes: storages.forKind(Node), pods: storages.forKind(Pod) }),
          ]
        : []),
      ...options.admission,
    ]);
    bind(
      RegistryToken,
      [PlaneStoresToken, ClockToken, LoggerToken, AdmissionToken, KindsToken, AuthorizerToken],
      (storages, clock, logger, admission, kinds, authorizer) => {
        const tokens = (kind: KindDefinition) => storages.tokensOf(kind);
        const { authenticateToken } = options;
        return createResourceRegistry({
          ...{ storages, tokens, clock, logger, admission, kinds, authorizer },
          ...(authenticateToken ? { authenticateToken } : {}),
        });
      },
    );
    bind(ApiClientToken, [RegistryToken, ClockToken], (registry, clock) => createInProcessClient(registry, { clock }));
  };
}
