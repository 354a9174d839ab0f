import { statusErrors } from '../errors/status-error.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import type { KubeObject } from '../meta/types.ts';
import { objectKey } from '../scope/storage-key.ts';
import type { ResourceStorage } from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { AdmissionPlugin, AdmissionRequest } from './admission.ts';
import { signalOption } from './request-steps.ts';

/** Access to the namespaces of the server. */
export interface NamespaceLifecycleOptions {
  /** The kind Namespace. */
  readonly kind: KindDefinition;
  readonly storage: ResourceStorage;
}

type NamespaceState = 'active' | 'terminating' | 'missing';

/** Group of access reviews, which store nothing in the namespace. */
const reviewGroup = 'authorization.k8s.io';

function isTerminating(stored: StoredObject): boolean {
  const namespace = stored.value<KubeObject & { readonly status?: { readonly phase?: string } }>();
  return namespace.metadata?.deletionTimestamp !== undefined || namespace.status?.phase === 'Terminating';
}

/**
 * Rejects creates in namespaces that do not exist or are being deleted: see
 * docs/reference/api-rules.md#namespace-life-cycle. A cached namespace suffices to admit an object, but not to reject
 * it.
 */
export function namespaceLifecycle(options: NamespaceLifecycleOptions): AdmissionPlugin {
  const { kind, storage } = options;
  const resource = { group: kind.group, resource: kind.names.plural };
  // The cache returns the same instance until the namespace changes, so each state of a namespace is parsed once.
  const states = new WeakMap<StoredObject, NamespaceState>();

  const stateOf = (stored: StoredObject | undefined): NamespaceState => {
    if (stored === undefined) return 'missing';
    let state = states.get(stored);
    if (state === undefined) {
      state = isTerminating(stored) ? 'terminating' : 'active';
      states.set(stored, state);
    }
    return state;
  };

  const readState = async (namespace: string, request: AdmissionRequest): Promise<NamespaceState> => {
    const key = objectKey(kind, undefined, namespace);
    const signal = signalOption(request.context);
    const cached = stateOf(await storage.get(key, { at: 'any' }, signal));
    return cached === 'active' ? cached : stateOf(await storage.get(key, { at: 'latest' }, signal));
  };

  return {
    name: 'NamespaceLifecycle',
    handles: (request) =>
      request.operation === 'create' &&
      request.subresource === undefined &&
      request.namespace !== undefined &&
      request.kind.scope === 'Namespaced' &&
      request.kind.group !== reviewGroup,
    mutate: async (request) => {
      const namespace = request.namespace ?? '';
      const impossible = namespace === '' || namespace.includes('/') || namespace.length > 253;
      const state = impossible ? 'missing' : await readState(namespace, request);
      if (state === 'active') return;
      if (state === 'missing') throw statusErrors.notFound(resource, namespace);
      const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
      throw statusErrors.forbidden(
        { group: request.kind.group, resource: request.kind.names.plural },
        request.name,
        why,
        [
          {
            reason: 'NamespaceTerminating',
            message: `namespace ${namespace} is being terminated`,
            field: 'metadata.namespace',
          },
        ],
      );
    },
  };
}
