import { createInProcessClient } from '@keelson/client';
import { ControllerManager } from '@keelson/controller-kit';
import type { ApiClient, Authorizer, KindDefinition, KubeObject, ResourceClient } from '@keelson/core';
import {
  createCachedStorages,
  createContinueTokens,
  createResourceRegistry,
  namespaceLifecycle,
  type ResourceRegistry,
} from '@keelson/core/internal';
import { FakeClock, noMetrics, silentLogger, systemClock } from '@keelson/core/runtime';
import { builtinKinds, Namespace } from '@keelson/kinds';
import { MemoryStore } from '@keelson/storage-memory';
import {
  type CertificateSigner,
  certificateController,
  GarbageCollector,
  namespaceController,
  podGarbageCollector,
} from '../../src/index.ts';

export interface TestPlaneOptions {
  /** Time advances only by `plane.clock.advance()`. Default: real time. */
  readonly fakeClock?: boolean;
  /** False: no controller runs. Default true. */
  readonly controllers?: boolean;
  /** Replaces the client of the controllers, for example to hide events from them. */
  readonly wrapClient?: (client: ApiClient) => ApiClient;
  /** Issues certificates; without it no CertificateController runs. */
  readonly certificateSigner?: CertificateSigner;
  /** Answers access reviews. */
  readonly authorizer?: Authorizer;
  /** Kinds besides the built-in ones. */
  readonly kinds?: readonly KindDefinition[];
}

/** The controllers over a registry, a watch cache and a memory store in the test process. */
export interface TestPlane {
  readonly api: ApiClient;
  readonly registry: ResourceRegistry;
  /** Present with the option `fakeClock`. */
  readonly clock: FakeClock | undefined;
  client<T extends KubeObject>(kind: KindDefinition<T>): ResourceClient<T>;
  close(): Promise<void>;
}

/** Starts a plane with the namespaces `default` and `kube-node-lease`. */
export async function startTestPlane(options: TestPlaneOptions = {}): Promise<TestPlane> {
  const fake = options.fakeClock ? new FakeClock() : undefined;
  const clock = fake ?? systemClock;
  const store = new MemoryStore({ clock });
  await store.ready();
  const storages = createCachedStorages({ store, clock });
  await storages.start();
  const registry = createResourceRegistry({
    storages,
    tokens: createContinueTokens({ secret: Buffer.alloc(32, 7), fingerprint: 'test', clock }),
    clock,
    logger: silentLogger,
    admission: [namespaceLifecycle({ kind: Namespace, storage: storages.forKind(Namespace) })],
    kinds: [...builtinKinds, ...(options.kinds ?? [])],
    ...(options.authorizer && { authorizer: options.authorizer }),
  });
  const api = createInProcessClient(registry, { clock });
  for (const name of ['default', 'kube-node-lease']) await api.resource(Namespace).create({ metadata: { name } });
  const context = { client: options.wrapClient?.(api) ?? api, clock, logger: silentLogger, metrics: noMetrics };
  const { certificateSigner: signer } = options;
  const controllers =
    options.controllers === false
      ? []
      : [
          new GarbageCollector(context),
          new ControllerManager({
            ...context,
            controllers: [
              namespaceController(context.client, clock),
              podGarbageCollector(),
              ...(signer === undefined ? [] : [certificateController(signer)]),
            ],
          }),
        ];
  await Promise.all(controllers.map((controller) => controller.start()));
  return {
    api,
    registry,
    clock: fake,
    client: (kind) => api.resource(kind),
    close: async () => {
      await Promise.all(controllers.map((controller) => controller.stop()));
      await storages.stop();
      await store.close();
    },
  };
}
