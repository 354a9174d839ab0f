import type { CallOptions } from './call-options.ts';
import type { DnsConfig, PortMapping } from './sandbox.ts';

/** Bandwidth limits of a pod in bits per second. A direction that is absent is not limited. */
export interface Bandwidth {
  readonly ingressRate?: number;
  readonly egressRate?: number;
}

/** The sandbox that a network plugin connects or disconnects. */
export interface NetworkRequest {
  readonly sandboxId: string;
  /** Namespace of the pod. */
  readonly namespace: string;
  /** Name of the pod. */
  readonly name: string;
  /** UID of the pod. */
  readonly uid?: string;
  /** The network namespace as a file, such as `/run/netns/x`. The file may be missing when `remove` is called. */
  readonly netnsPath: string;
  /** Port mappings that have a host port. */
  readonly portMappings?: readonly PortMapping[];
  readonly bandwidth?: Bandwidth;
  /** DNS settings for plugins that support them. The resolv.conf of the pod is written by the runtime itself. */
  readonly dns?: DnsConfig;
}

/** The result of connecting a sandbox. */
export interface NetworkAttachment {
  /** Addresses without prefix length, the primary address first; at least one. */
  readonly ips: readonly string[];
}

/** Whether sandboxes can be connected now; if not, `reason` is a CamelCase word and `message` names what is missing. */
export type NetworkStatus =
  | { readonly ready: true }
  | { readonly ready: false; readonly reason: string; readonly message: string };

/**
 * Connects pod sandboxes to the pod network. Calls for one sandbox are executed one after another in the order of the
 * calls; calls for different sandboxes are executed concurrently. Every failure is a `NetworkError`, which is also a
 * `RuntimeError`.
 */
export interface NetworkPlugin {
  /** Name of the plugin: `cni` or `bridge`. */
  readonly name: string;
  /** Determines whether the network is ready. Never rejects; fast enough to be polled every few seconds. */
  status(options?: CallOptions): Promise<NetworkStatus>;
  /**
   * Connects the network namespace. A failed attempt is rolled back before the error is thrown.
   * @throws `AlreadyExists` when the sandbox is already connected
   */
  add(request: NetworkRequest, options?: CallOptions): Promise<NetworkAttachment>;
  /**
   * Disconnects the sandbox, also after a restart, after a change of the configuration, and when the network namespace
   * no longer exists. Idempotent: does nothing for a sandbox that is not connected. The caller retries when it throws.
   */
  remove(request: Pick<NetworkRequest, 'sandboxId' | 'netnsPath'>, options?: CallOptions): Promise<void>;
  /** Verifies that the network of the sandbox is still as `add` configured it; throws when it is not. */
  check(request: Pick<NetworkRequest, 'sandboxId' | 'netnsPath'>, options?: CallOptions): Promise<void>;
  /** Sets the address range of sandboxes that are connected from now on. */
  updateConfig(config: { readonly podCidr?: string }): void;
  /** Disconnects all sandboxes that are not in `known`. A runtime calls it once at its start. */
  sweep(known: ReadonlySet<string>, options?: CallOptions): Promise<void>;
}
