import type { RequestContext } from '../meta/request-context.ts';
import type { Status } from '../meta/status.ts';
import type { GroupVersionKind, KubeObject } from '../meta/types.ts';
import type { ConnectSubresource } from './connect.ts';
import type { Column } from './kind-definition.ts';
import type { Schema } from './schema.ts';
import type { StrategyContext } from './strategy.ts';

/**
 * How a subresource reaches its parent. Implemented by the registry: `update` runs the parent's whole update path
 * (admission, generation, validation, conflict retry), so that a subresource never writes around the rules.
 */
export interface ParentAccess<T extends KubeObject = KubeObject> {
  readonly namespace: string | undefined;
  readonly name: string;
  /** The stored parent. Throws the parent's 404. */
  get(): Promise<T>;
  /**
   * Applies `change` (which mutates the copy it gets) to the stored parent; retried on concurrent writes unless the
   * change itself throws. `as: 'spec'` runs the main strategy, `'status'` the status strategy, `'raw'` neither; it
   * does not raise the generation either.
   */
  update(
    change: (parent: T) => void,
    options?: {
      readonly as?: 'spec' | 'status' | 'raw';
      readonly resourceVersion?: string;
      readonly uid?: string;
      readonly dryRun?: boolean;
    },
  ): Promise<T>;
  /** Deletes the parent through the ordinary path. */
  delete(options: {
    readonly gracePeriodSeconds?: number;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly dryRun?: boolean;
  }): Promise<void>;
}

/** One call of a subresource. `body` is decoded by the subresource's own schema. */
export interface SubresourceCall<T extends KubeObject = KubeObject, B extends KubeObject = KubeObject> {
  readonly context: RequestContext;
  readonly parent: ParentAccess<T>;
  readonly body: B;
  readonly dryRun: boolean;
  /** The registry's clock at the start of the call. */
  readonly now: Date;
}

/** What a subresource answers: an object (or Status) and the HTTP code. */
export interface SubresourceAnswer {
  readonly code: 200 | 201;
  readonly object: KubeObject | Status;
}

/**
 * `status`: the parent with the status strategy. `replace`: the parent, of which one part changes, such as `finalize`.
 * `scale`: a projection that can be read, replaced and patched. `action`: a POST of a body kind. `connect`: a call that
 * is passed on.
 */
export type SubresourceDefinition =
  | ConnectSubresource
  | { readonly type: 'status'; readonly name: 'status' }
  | {
      readonly type: 'replace';
      /** E.g. `finalize`, `approval`. */
      readonly name: string;
      /** Offers GET and PATCH beside PUT. Default false. */
      readonly patchable?: boolean;
      /**
       * Copies the one part that this subresource may change from `object` into `stored`; may refuse with a
       * StatusError.
       */
      // biome-ignore lint/suspicious/noExplicitAny: the parent's type is the kind's own
      readonly apply: (stored: any, object: any, context: StrategyContext) => void;
    }
  | {
      readonly type: 'projection';
      /** E.g. `scale`. */
      readonly name: string;
      readonly bodyKind: GroupVersionKind;
      // biome-ignore lint/suspicious/noExplicitAny: body types differ by subresource
      readonly schema: Schema<any>;
      // biome-ignore lint/suspicious/noExplicitAny: the parent's type is the kind's own
      readonly read: (parent: any) => KubeObject;
      /** Validates the body (throwing a StatusError) and applies it to the parent. */
      // biome-ignore lint/suspicious/noExplicitAny: the parent's type is the kind's own
      readonly write: (parent: any, body: any) => void;
      /** Columns of the body in a table. Default: those of kinds that declare none. */
      // biome-ignore lint/suspicious/noExplicitAny: body types differ by subresource
      readonly columns?: readonly Column<any>[];
      /** The field of the parent that `spec.replicas` of the body stands for. Default: `spec.replicas`. */
      readonly replicasPath?: readonly string[];
    }
  | {
      readonly type: 'action';
      /** E.g. `binding`, `eviction`, `rollback`. */
      readonly name: string;
      readonly bodyKind: GroupVersionKind;
      /**
       * Other versions in which the body has the same fields. Such a body is converted to the version of `bodyKind`.
       */
      readonly otherVersions?: readonly string[];
      // biome-ignore lint/suspicious/noExplicitAny: body types differ by subresource
      readonly schema: Schema<any>;
      // biome-ignore lint/suspicious/noExplicitAny: the parent's and body's types are the kind's own
      readonly run: (call: SubresourceCall<any, any>) => Promise<SubresourceAnswer>;
    };
