import type { AuthenticateToken, Authorizer } from '../meta/authorizer.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { Status } from '../meta/status.ts';
import type { GroupVersionResource, KubeObject } from '../meta/types.ts';

/** What the response for a virtual object may depend on besides the object. */
export interface VirtualCall {
  readonly context: RequestContext;
  /** The namespace in the path; undefined exactly for cluster-scoped kinds. */
  readonly namespace: string | undefined;
  readonly now: Date;
  readonly dryRun: boolean;
  /**
   * Posts a body to a subresource of another object in the same namespace, with all checks of such a request but its
   * authorization. Throws a StatusError.
   */
  createSubresource(
    resource: GroupVersionResource,
    name: string,
    subresource: string,
    body: KubeObject,
  ): Promise<KubeObject | Status>;
  readonly authorizer: Authorizer;
  /** Undefined when the server does not support bearer tokens. */
  readonly authenticateToken: AuthenticateToken | undefined;
}

/** Computes the current objects of a collection: of one namespace or all, and of one name or all. */
export type ReadVirtual<T extends KubeObject> = (
  place: { readonly namespace: string | undefined; readonly name: string | undefined },
  signal: AbortSignal | undefined,
) => Promise<readonly T[]>;

/**
 * Behaviour of a kind whose objects are not stored: see docs/adr/0008. Exactly one of the two functions is present.
 *
 * - `create`: the objects are requests. A POST is answered at once with the completed object (201), and no other verb
 * exists.
 * - `read`: the objects are computed. The verbs are get and list, with selectors and tables as for stored objects.
 */
export interface VirtualKind<T extends KubeObject> {
  /** Completes a private copy of a valid object, or answers it with a Status; may throw a StatusError. */
  readonly create?: (object: T, call: VirtualCall) => T | Status | Promise<T | Status>;
  /** Computes the objects for a get or list; may throw a StatusError. */
  readonly read?: ReadVirtual<T>;
}
