import type { KindDefinition } from '../kind/kind-definition.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { KubeObject } from '../meta/types.ts';

export type AdmissionOperation = 'create' | 'update' | 'delete' | 'connect';

/** What a plugin may look at. `object` is undefined for deletes, `oldObject` for creates; both are private copies. */
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
 * One step of the admission chain. All `mutate` steps run before any `validate` step, each in registration order. A plugin
 * refuses by throwing a `StatusError` (403 Forbidden as a rule); `mutate` changes `request.object` in place.
 */
export interface AdmissionPlugin {
  readonly name: string;
  readonly handles?: (request: AdmissionRequest) => boolean;
  readonly mutate?: (request: AdmissionRequest) => void | Promise<void>;
  readonly validate?: (request: AdmissionRequest) => void | Promise<void>;
}
