/** How registries are reached. An empty object is the usual way. */
export interface RegistryOptions {
  /** Registries that are spoken to by plain http, as `HOST` or `HOST:PORT`; those on loopback are in any case. */
  readonly insecureHosts?: readonly string[];
  /** Certificates of authorities, in PEM, that are trusted besides those of Node. */
  readonly ca?: string | readonly string[];
  /**
   * Registries that are asked first, by the host in the reference: `{ 'docker.io': ['https://mirror.example'] }`. They
   * are asked without the image's credentials, in this order, and the registry itself comes last.
   */
  readonly mirrors?: Readonly<Record<string, readonly string[]>>;
  /** Layers of one image that are fetched at once; default 3. */
  readonly parallelDownloads?: number;
  /** Time until an answer begins, and for manifests and tokens until it ends; default 30 s. */
  readonly requestTimeoutMs?: number;
  /** Time without a byte in the middle of a layer; default 5 minutes. */
  readonly stallTimeoutMs?: number;
}
