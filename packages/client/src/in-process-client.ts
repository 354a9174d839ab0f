import {
  type ApiClient,
  type DiscoveredResource,
  type GroupVersionResource,
  type KindDefinition,
  type KubeObject,
  type RequestContext,
  type ResourceClient,
  systemUser,
  type UserInfo,
} from '@keelson/core';
import { type ResourceRegistry, servedHead, servedOwnership, servedValue, storageKindOf } from '@keelson/core/internal';
import { type Clock, systemClock } from '@keelson/core/runtime';
import { InProcessResourceClient } from './in-process-resource-client.ts';

/** Options of an in-process client. */
export interface InProcessClientOptions {
  /** The user of the requests. Default: the server itself, which is not restricted. */
  readonly user?: UserInfo;
  /**
   * User agent of the requests. Its part before the first slash is the default field manager. Default `keelson-client`.
   */
  readonly userAgent?: string;
  /** Clock for `timeoutSeconds` of watches; default: the system clock. */
  readonly clock?: Clock;
  /** Receives the warnings that HTTP clients receive as `Warning` headers; default: they are dropped. */
  readonly onWarning?: (text: string) => void;
}

/**
 * An API client without HTTP: every call is executed by the {@link ResourceRegistry} of the same process with the same
 * checks as an HTTP request, except authentication and authorization.
 */
export function createInProcessClient(registry: ResourceRegistry, options: InProcessClientOptions = {}): ApiClient {
  const clock = options.clock ?? systemClock;
  const warn = options.onWarning ?? (() => {});
  const contextOf = (signal: AbortSignal | undefined): RequestContext => ({
    user: options.user ?? systemUser,
    requestId: '',
    userAgent: options.userAgent ?? 'keelson-client',
    warn,
    ...(signal ? { signal } : {}),
  });
  const dynamic = <T extends KubeObject>(resource: GroupVersionResource, read = servedValue): ResourceClient<T> =>
    new InProcessResourceClient<T>({ registry, clock, contextOf, read }, resource, undefined);
  return {
    resource: <T extends KubeObject>(kind: KindDefinition<T>) =>
      dynamic<T>({ group: kind.group, version: kind.version, resource: kind.names.plural }),
    dynamic: (resource, { metadataOnly = false } = {}) => dynamic<KubeObject>(resource, reader(metadataOnly)),
    discover: async () => registry.kinds().map(discovered),
  };
}

function reader(metadataOnly: boolean | 'ownership') {
  if (metadataOnly === 'ownership') return servedOwnership;
  return metadataOnly ? servedHead : servedValue;
}

function discovered(kind: KindDefinition): DiscoveredResource {
  const stored = storageKindOf(kind);
  return {
    group: kind.group,
    version: kind.version,
    resource: kind.names.plural,
    kind: kind.kind,
    namespaced: kind.scope === 'Namespaced',
    verbs: kind.verbs,
    storage: { group: stored.group, resource: stored.names.plural },
  };
}
