import type { KindDefinition } from '../kind/kind-definition.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { KubeObject } from '../meta/types.ts';

export type AdmissionOperation = 'create' | 'update' | 'delete' | 'connect';

/**
 * A request as a plugin sees it. `object` is undefined for deletes; for calls of subresources it is their body or their
 * options. `oldObject` is undefined for creates and connects. Both are private copies.
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
  readonly context: RequestContext;
}

/**
 * One step of the admission chain.
 *
 * Call order: `handles` decides whether the plugin takes part. All `mutate` steps run before any `validate` step, each
 * in registration order and one after the other. Between the two, the server sets its metadata, calls the hooks of the
 * kind (`Strategy`) and validates the object: see docs/reference/api-rules.md#order-of-a-write. Deletes and connects
 * run both groups of steps back to back.
 *
 * Rules: a plugin rejects a request by throwing a `StatusError`, as a rule 403 Forbidden; any other error is a 500.
 * `mutate` changes `request.object` in place and never `oldObject`; `validate` changes nothing. Steps run in a dry run
 * too, and again when a concurrent write makes a new attempt necessary. They must have no effect outside the request.
 */
export interface AdmissionPlugin {
  readonly name: string;
  readonly handles?: (request: AdmissionRequest) => boolean;
  readonly mutate?: (request: AdmissionRequest) => void | Promise<void>;
  readonly validate?: (request: AdmissionRequest) => void | Promise<void>;
}
