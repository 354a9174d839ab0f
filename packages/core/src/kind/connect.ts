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

/** The query of a call, converted by the types of its parameters. Absent parameters are omitted. */
export interface ConnectOptions extends KubeObject {
  readonly [parameter: string]: unknown;
}

/** The target of a call to a connect subresource. */
export type ConnectLocation =
  /** The agent of a node, under its own address and with the server's identity. */
  | {
      readonly to: 'agent';
      readonly node: string;
      /** Path of the request to the agent, percent-encoded, with a leading slash. */
      readonly path: string;
      /** Query of the request to the agent, without the question mark. */
      readonly query: string;
      /**
       * True for the `proxy` of a node, where the client chooses path and query. Addresses of the server itself are not
       * allowed, and responses are forwarded unchanged.
       */
      readonly proxied?: boolean;
      /** True: the certificate of the agent is not verified. */
      readonly anyCertificate?: boolean;
    }
  /** A port of a node other than that of its agent. */
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
  /** There is no content yet: the answer is an empty text and not an error. */
  | { readonly to: 'nothing' };

/** One call of a connect subresource, after its options were checked and admitted. */
export interface ConnectCall<T extends KubeObject = KubeObject> {
  readonly context: RequestContext;
  /** The stored parent. */
  readonly parent: T;
  /** The name in the path; with `parentName` it contains more than the name of the parent. */
  readonly name: string;
  readonly options: ConnectOptions;
  /** The rest of the path after the subresource, as sent, with its leading slash; `/` when there is none. */
  readonly path: string;
  /** The query string as sent, without the question mark. */
  readonly query: string;
  /** Reads another object; undefined when the object or its kind does not exist. */
  read(resource: GroupVersionResource, name: string, namespace?: string): Promise<KubeObject | undefined>;
}

/**
 * A subresource that is served by another process. The server authorizes the call, resolves its target and forwards the
 * call (docs/adr/0021).
 */
export interface ConnectSubresource {
  readonly type: 'connect';
  /** E.g. `log`, `exec`, `proxy`. */
  readonly name: string;
  /** Sorted. */
  readonly verbs: readonly ConnectVerb[];
  /** The kind of the options, which is also the kind in discovery. */
  readonly optionsKind: GroupVersionKind;
  /**
   * The kind that discovery and OpenAPI documents show, when it is not the kind of the options: for pods/log,
   * Kubernetes shows Pod.
   */
  readonly shownKind?: GroupVersionKind;
  readonly parameters: readonly ConnectParameter[];
  /** True for a read such as pods/log, which passes no admission. Default: calls pass admission as `connect`. */
  readonly skipsAdmission?: boolean;
  /** True when the path may continue after the name. The rest is forwarded, and any method is allowed then. */
  readonly tail?: boolean;
  /** Whether requests with `Upgrade` are forwarded. */
  readonly upgrades: boolean;
  /** Errors of well-formed options; 422. */
  readonly validate?: (options: ConnectOptions) => readonly FieldError[];
  /**
   * Extracts the name of the parent from the name in the path, for example `web` from `https:web:443`.
   *
   * @throws StatusError 400
   */
  readonly parentName?: (name: string) => string;
  /** Resolves the target. @throws StatusError when there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: the parent's type is the kind's own
  readonly locate: (call: ConnectCall<any>) => ConnectLocation | Promise<ConnectLocation>;
}
