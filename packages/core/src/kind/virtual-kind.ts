import type { AuthenticateToken, Authorizer } from '../meta/authorizer.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { KubeObject } from '../meta/types.ts';

/** What the answer to a virtual object may depend on besides the object. */
export interface VirtualCall {
  readonly context: RequestContext;
  /** Of the path; undefined exactly for cluster-scoped kinds. */
  readonly namespace: string | undefined;
  readonly now: Date;
  readonly authorizer: Authorizer;
  /** Absent on servers that know no tokens. */
  readonly authenticateToken: AuthenticateToken | undefined;
}

/**
 * Behaviour of a kind whose objects are questions: a POST is answered at once with the completed object (201), nothing is stored,
 * and no other verb exists; docs/adr/0008.
 */
export interface VirtualKind<T extends KubeObject> {
  /** Completes a private copy of a valid object; may throw a StatusError. */
  readonly create: (object: T, call: VirtualCall) => T | Promise<T>;
}
