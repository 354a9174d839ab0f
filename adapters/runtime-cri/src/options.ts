import type { Clock, Logger } from '@keelson/core';
import type { PinnedTls } from './connection/cri-connection.ts';

export interface CriRuntimeOptions {
  /**
   * Where the runtime service listens: `unix:///run/containerd/containerd.sock`, an absolute path, or
   * `tcp://host:port`.
   */
  readonly endpoint: string;
  /** Where the image service listens, if elsewhere. */
  readonly imageEndpoint?: string;
  /**
   * For services that speak TLS: what this end shows, and what the other end must show. Absent: connections are plain.
   */
  readonly tls?: PinnedTls;
  readonly clock?: Clock;
  readonly logger?: Logger;
  /**
   * Address of pods that use the machine's network; absent: that of the first interface that is not loopback, else
   * 127.0.0.1.
   */
  readonly nodeIp?: string | (() => string);
  /** How long the creation waits for the daemon in order to learn what it can do, milliseconds; default 2 s. */
  readonly probeTimeoutMs?: number;
}
