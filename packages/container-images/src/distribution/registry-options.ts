/** Access to registries. An empty object selects the defaults. */
export interface RegistryOptions {
  /** Registries with plain http, as `HOST` or `HOST:PORT`. Registries on loopback always use it. */
  readonly insecureHosts?: readonly string[];
  /** Additional certificate authorities in PEM, besides those of Node. */
  readonly ca?: string | readonly string[];
  /**
   * Mirrors by the host of the reference: `{ 'docker.io': ['https://mirror.example'] }`. They are queried in this
   * order, before the registry, without the credentials of the image.
   */
  readonly mirrors?: Readonly<Record<string, readonly string[]>>;
  /** Number of concurrent downloads of one image; default 3. */
  readonly parallelDownloads?: number;
  /** Timeout until a response starts, for manifests and tokens until it ends, in milliseconds; default 30 s. */
  readonly requestTimeoutMs?: number;
  /** Maximum time without received data of a layer, in milliseconds; default 5 minutes. */
  readonly stallTimeoutMs?: number;
}
