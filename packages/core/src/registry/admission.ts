import { statusErrors } from '../errors/status-error.ts';
import { shownResult } from '../kind/define-kind.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { KubeObject } from '../meta/types.ts';
import type { ResourceStorage } from '../storage/resource-storage.ts';
import { kindPrefix } from '../storage/storage-key.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { signalOption } from './resource-binding.ts';
import type { DeleteParameters, WriteParameters } from './resource-service.ts';

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
  const prefix = kindPrefix(kind);
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

  const rejectUnlessActive = async (namespace: string, request: AdmissionRequest): Promise<void> => {
    const impossible = namespace === '' || namespace.includes('/') || namespace.length > 253;
    const latest = () => storage.get(`${prefix}${namespace}`, { at: 'latest' }, signalOption(request.context));
    const state = impossible ? 'missing' : stateOf(await latest());
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
  };

  return {
    name: 'NamespaceLifecycle',
    handles: (request) =>
      request.operation === 'create' &&
      request.subresource === undefined &&
      request.namespace !== undefined &&
      request.kind.scope === 'Namespaced' &&
      request.kind.group !== reviewGroup,
    mutate: (request) => {
      const namespace = request.namespace ?? '';
      const cached = storage.cached?.get(`${prefix}${namespace}`);
      return stateOf(cached) === 'active' ? undefined : rejectUnlessActive(namespace, request);
    },
  };
}

/** The operations that admission plugins examine. */
export type AdmissionOperation = 'create' | 'update' | 'delete' | 'connect';

/**
 * The request that a plugin examines. `object` is undefined for deletes; for subresources it is the body or the options
 * of the call. `oldObject` is undefined for creates and connects. Both are private copies of the request.
 */
export interface AdmissionRequest {
  readonly operation: AdmissionOperation;
  readonly kind: KindDefinition;
  readonly namespace: string | undefined;
  readonly name: string;
  readonly subresource: string | undefined;
  readonly object: KubeObject | undefined;
  readonly oldObject: KubeObject | undefined;
  readonly dryRun: boolean;
  /** The options of the call; absent for connects. */
  readonly options?: OperationOptions | undefined;
  /**
   * True for the changes that an action, such as binding or eviction, makes to stored objects. The request for the
   * action was examined before, as a create of the subresource.
   */
  readonly byAction?: boolean | undefined;
  readonly context: RequestContext;
}

/** The options of a call, by the kind that `meta.k8s.io/v1` defines for the operation. */
export type OperationOptions =
  | { readonly kind: 'CreateOptions' | 'UpdateOptions'; readonly parameters: WriteParameters }
  | { readonly kind: 'DeleteOptions'; readonly parameters: DeleteParameters };

/** The options of a PATCH as admission receives them: those of the create or update that it is, without `force`. */
export function optionsOfPatch(
  parameters: WriteParameters,
  kind: 'CreateOptions' | 'UpdateOptions' = 'UpdateOptions',
): Extract<OperationOptions, { readonly parameters: WriteParameters }> {
  const { force: _, ...others } = parameters;
  return { kind, parameters: others };
}

/**
 * One step of the admission chain.
 *
 * Call order: `resources`, `idle` and `handles` decide whether the plugin takes part. All `mutate` steps run before any
 * `validate` step, each in registration order and one after the other. Between the two, the server sets its metadata,
 * calls the hooks of the kind (`Strategy`) and validates the object: see docs/reference/api-rules.md#order-of-a-write.
 * Deletes and connects run both groups of steps back to back.
 *
 * Rules: a plugin rejects a request by throwing a `StatusError`, as a rule 403 Forbidden; any other error is a 500.
 * `mutate` changes `request.object` in place and never `oldObject`; `validate` changes nothing. Steps run in a dry run
 * too, and again when a concurrent write makes a new attempt necessary. They must have no effect outside the request.
 */
export interface AdmissionPlugin {
  readonly name: string;
  /** The resources of which the plugin examines requests: `pods`, `ingresses.networking.k8s.io`. Default: all. */
  readonly resources?: readonly string[];
  /** True while the plugin has nothing to do: requests then pass without a call of it. It may change at any time. */
  readonly idle?: boolean;
  readonly handles?: (request: AdmissionRequest) => boolean;
  readonly mutate?: (request: AdmissionRequest) => void | Promise<void>;
  readonly validate?: (request: AdmissionRequest) => void | Promise<void>;
}

type Step = (request: AdmissionRequest) => void | Promise<void>;

function takesPart(plugin: AdmissionPlugin, request: AdmissionRequest): boolean {
  return plugin.idle !== true && (plugin.handles?.(request) ?? true);
}

async function runFrom(
  steps: readonly [AdmissionPlugin, Step][],
  start: number,
  request: AdmissionRequest,
): Promise<void> {
  for (const [plugin, step] of steps.slice(start)) {
    if (takesPart(plugin, request)) await step.call(plugin, request);
  }
}

/** Remains synchronous until a step returns a promise, so that synchronous plugins cost no turn of the event loop. */
function run(steps: readonly [AdmissionPlugin, Step][], request: AdmissionRequest): Promise<void> | undefined {
  for (const [i, [plugin, step]] of steps.entries()) {
    if (!takesPart(plugin, request)) continue;
    const pending = step.call(plugin, request);
    if (pending === undefined) continue;
    if (typeof pending?.then === 'function') return pending.then(() => runFrom(steps, i + 1, request));
    throw new TypeError(
      `the admission plugin ${plugin.name} returned ${shownResult(pending)} for ${request.kind.kind}; ` +
        'it must change the object of the request or throw a StatusError, and return nothing',
    );
  }
  return undefined;
}

/** The steps of the plugins that examine one kind. */
interface KindSteps {
  readonly mutating: readonly [AdmissionPlugin, Step][];
  readonly validating: readonly [AdmissionPlugin, Step][];
}

/** Runs the steps of the plugins in registration order. The first error ends the operation. */
export class AdmissionChain {
  readonly #plugins: readonly AdmissionPlugin[];
  readonly #byKind = new WeakMap<KindDefinition, KindSteps>();

  constructor(plugins: readonly AdmissionPlugin[]) {
    this.#plugins = plugins;
  }

  #stepsOf(kind: KindDefinition): KindSteps {
    let steps = this.#byKind.get(kind);
    if (steps === undefined) {
      const name = kind.group === '' ? kind.names.plural : `${kind.names.plural}.${kind.group}`;
      const plugins = this.#plugins.filter(({ resources }) => resources?.includes(name) ?? true);
      steps = {
        mutating: plugins.flatMap((plugin): [AdmissionPlugin, Step][] =>
          plugin.mutate ? [[plugin, plugin.mutate]] : [],
        ),
        validating: plugins.flatMap((plugin): [AdmissionPlugin, Step][] =>
          plugin.validate ? [[plugin, plugin.validate]] : [],
        ),
      };
      this.#byKind.set(kind, steps);
    }
    return steps;
  }

  /** Runs the mutating steps. Undefined when all of them were synchronous and are complete. */
  mutate(request: AdmissionRequest): Promise<void> | undefined {
    return run(this.#stepsOf(request.kind).mutating, request);
  }

  /** Runs the validating steps. Undefined when all of them were synchronous and are complete. */
  validate(request: AdmissionRequest): Promise<void> | undefined {
    return run(this.#stepsOf(request.kind).validating, request);
  }

  /** Runs both groups of steps back to back, for operations without hooks between them. */
  async admit(request: AdmissionRequest): Promise<void> {
    const mutating = this.mutate(request);
    if (mutating) await mutating;
    const validating = this.validate(request);
    if (validating) await validating;
  }
}
