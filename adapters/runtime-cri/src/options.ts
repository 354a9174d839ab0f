import type { Clock, Logger } from '@keelson/core/runtime';
import type { PinnedTls } from './connection/cri-connection.ts';

export interface CriRuntimeOptions {
  /**
   * Endpoint of the runtime service: `unix:///run/containerd/containerd.sock`, an absolute path, or `tcp://host:port`.
   */
  readonly endpoint: string;
  /** Endpoint of the image service; default: the endpoint of the runtime service. */
  readonly imageEndpoint?: string;
  /** Mutual TLS: the client's key and certificate, and the pinned server certificate. Absent: no TLS. */
  readonly tls?: PinnedTls;
  readonly clock?: Clock;
  readonly logger?: Logger;
  /**
   * Address of pods that use the machine's network; absent: the address of the first interface that is not loopback,
   * else 127.0.0.1.
   */
  readonly nodeIp?: string | (() => string);
  /** Longest wait for the daemon when its capabilities are determined, in milliseconds; default 2000. */
  readonly probeTimeoutMs?: number;
}
