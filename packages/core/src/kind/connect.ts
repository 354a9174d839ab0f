import type { FieldError } from '../meta/field-error.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { GroupVersionKind, GroupVersionResource, KubeObject } from '../meta/types.ts';

/** Verbs by which a connect subresource is reached: GET is `get`, POST `create`, and so on. */
export type ConnectVerb = 'create' | 'delete' | 'get' | 'patch' | 'update';

/**
 * One query parameter of a connect subresource. `integer` and `time` are refused with 400 when they cannot be read;
 * `ports` is a list of port numbers, repeated or joined by commas.
 */
export interface ConnectParameter {
  readonly name: string;
  readonly type: 'boolean' | 'integer' | 'string' | 'strings' | 'time' | 'ports';
  readonly description: string;
}

/** The query of a call, read as its parameters say; those that were not sent are absent. Also what admission sees. */
export interface ConnectOptions extends KubeObject {
  readonly [parameter: string]: unknown;
}

/** Where a call of a connect subresource leads. */
export type ConnectLocation =
  /** The agent of a node, under its own address and with the server's identity. */
  | {
      readonly to: 'agent';
      readonly node: string;
      /** Begins with a slash; encoded. */
      readonly path: string;
      /** Without the question mark. */
      readonly query: string;
      /** Chosen by the client as a whole: the server's own addresses are out of reach, and answers pass as they are. */
      readonly proxied?: boolean;
      /** True: the agent need not prove who it is. */
      readonly anyCertificate?: boolean;
    }
  /** Another port of a node. */
  | {
      readonly to: 'node';
      readonly node: string;
      readonly port: number;
      readonly scheme: 'http' | 'https';
      readonly path: string;
      readonly query: string;
    }
  /** An address inside the cluster, such as that of a pod; never one of the server itself. */
  | {
      readonly to: 'address';
      readonly host: string;
      readonly port: number;
      readonly scheme: 'http' | 'https';
      readonly path: string;
      readonly query: string;
    }
  /** Nothing is there yet, which is no failure: an empty text. */
  | { readonly to: 'nothing' };

/** One call of a connect subresource, after its options were checked and admitted. */
export interface ConnectCall<T extends KubeObject = KubeObject> {
  readonly context: RequestContext;
  /** The stored parent. */
  readonly parent: T;
  /** As the path has it; where the subresource has `parentName`, more than the name of the parent. */
  readonly name: string;
  readonly options: ConnectOptions;
  /** What stands behind the subresource in the path, as sent, with its slash; `/` when nothing does. */
  readonly path: string;
  /** As sent, without the question mark. */
  readonly query: string;
  /** Another stored object; undefined when there is none, or no such kind. */
  read(resource: GroupVersionResource, name: string, namespace?: string): Promise<KubeObject | undefined>;
}

/**
 * A subresource that is served elsewhere: the server decides who may call it and finds out where it leads; the call
 * itself is passed on (docs/adr/0021).
 */
export interface ConnectSubresource {
  readonly type: 'connect';
  /** E.g. `log`, `exec`, `proxy`. */
  readonly name: string;
  /** Sorted. */
  readonly verbs: readonly ConnectVerb[];
  /** What discovery calls it: the kind of its options. */
  readonly optionsKind: GroupVersionKind;
  /**
   * Shown in discovery and documents instead of the kind of the options, where the published documents have another.
   */
  readonly shownKind?: GroupVersionKind;
  readonly parameters: readonly ConnectParameter[];
  /** True when the path goes on behind the name, and belongs to who answers; any method is passed on then. */
  readonly tail?: boolean;
  /** Whether a request to leave HTTP (`Upgrade`) is passed on. */
  readonly upgrades: boolean;
  /** Errors of options that can be read; 422. */
  readonly validate?: (options: ConnectOptions) => readonly FieldError[];
  /** The name of the parent in that of the path, `https:web:443` for one. @throws StatusError 400 */
  readonly parentName?: (name: string) => string;
  /** @throws StatusError when it leads nowhere. */
  // biome-ignore lint/suspicious/noExplicitAny: the parent's type is the kind's own
  readonly locate: (call: ConnectCall<any>) => ConnectLocation | Promise<ConnectLocation>;
}
