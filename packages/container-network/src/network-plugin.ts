import type { CallOptions, DnsConfig, PortMapping } from '@keelson/container-runtime';

/** Limits of a pod's traffic, in bits per second; a direction that is absent is not limited. */
export interface Bandwidth {
  readonly ingressRate?: number;
  readonly egressRate?: number;
}

/** One sandbox that gets, or gives up, its network. */
export interface NetworkRequest {
  readonly sandboxId: string;
  /** Of the pod. */
  readonly namespace: string;
  /** Of the pod. */
  readonly name: string;
  /** Of the pod. */
  readonly uid?: string;
  /** The network namespace as a file, such as `/run/netns/x`. It may be gone by the time of `remove`. */
  readonly netnsPath: string;
  /** Those without a host port are left out. */
  readonly portMappings?: readonly PortMapping[];
  readonly bandwidth?: Bandwidth;
  /** For plugins that want to know it; resolv.conf is made by the runtime. */
  readonly dns?: DnsConfig;
}

/** What a sandbox has got. */
export interface NetworkAttachment {
  /** Addresses without prefix length, the main one first; at least one. */
  readonly ips: readonly string[];
}

/**
 * Whether sandboxes can have a network now. `reason` is one word, `message` says what is missing; both only when not
 * ready.
 */
export type NetworkStatus =
  | { readonly ready: true }
  | { readonly ready: false; readonly reason: string; readonly message: string };

/**
 * Gives pod sandboxes their network. Calls for one sandbox are done one after another, in the order they came; those
 * for different sandboxes at the same time. All errors are `NetworkError`s, which are runtime errors too.
 */
export interface NetworkPlugin {
  /** `cni` or `bridge`. */
  readonly name: string;
  /** Never throws: what is wrong is in the answer. Cheap enough to be asked every few seconds. */
  status(options?: CallOptions): Promise<NetworkStatus>;
  /**
   * Connects the namespace. What a failed attempt has left is taken back before the error is thrown; a sandbox that is
   * connected already is an `AlreadyExists` error.
   */
  add(request: NetworkRequest, options?: CallOptions): Promise<NetworkAttachment>;
  /**
   * Takes back what `add` did, also after a restart, also with the configuration changed since, also when the namespace
   * is gone. Idempotent: nothing happens for a sandbox that is not connected. When it throws it is to be called again.
   */
  remove(request: Pick<NetworkRequest, 'sandboxId' | 'netnsPath'>, options?: CallOptions): Promise<void>;
  /** Asks the plugins whether all is still as `add` left it; throws when it is not. */
  check(request: Pick<NetworkRequest, 'sandboxId' | 'netnsPath'>, options?: CallOptions): Promise<void>;
  /** Addresses of sandboxes that are connected from now on. */
  updateConfig(config: { readonly podCidr?: string }): void;
  /**
   * Removes what is left of sandboxes that are not among these; for a runtime that starts and knows which it still has.
   */
  sweep(known: ReadonlySet<string>, options?: CallOptions): Promise<void>;
}
