/** Contents of an image's configuration that decide how it runs. */
export interface ImageConfig {
  readonly user?: string;
  readonly env?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly cmd?: readonly string[];
  readonly workingDir?: string;
  readonly stopSignal?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Declared volumes; only for information. */
  readonly volumes?: readonly string[];
}

/** An image in the store of the runtime. */
export interface Image {
  /** Digest of the configuration, `sha256:...`, or a name of the runtime's own for a built-in one. */
  readonly id: string;
  /** Names with tag. */
  readonly repoTags: readonly string[];
  /** Names with digest. */
  readonly repoDigests: readonly string[];
  readonly sizeBytes: number;
  /** Numeric user of the image, if it names one. */
  readonly uid?: number;
  readonly username?: string;
  /** Never collected. */
  readonly pinned: boolean;
  readonly config: ImageConfig;
}

/** Credentials of a registry; the first that is present is used, in this order. */
export interface ImageAuth {
  readonly registryToken?: string;
  readonly identityToken?: string;
  readonly username?: string;
  readonly password?: string;
  readonly serverAddress?: string;
}

/** How far a pull has come. */
export interface PullProgress {
  /** Bytes received so far, over all layers. */
  readonly receivedBytes: number;
  /** Absent while it is not known. */
  readonly totalBytes?: number;
}

/** Credentials and callbacks of a pull. */
export interface PullRequest {
  readonly auth?: ImageAuth;
  /** Called at least every few seconds while data arrives; when the calls stop, a watchdog may abort the pull. */
  readonly onProgress?: (progress: PullProgress) => void;
}

/** A file system that holds images or container layers. */
export interface FilesystemUsage {
  /** Epoch milliseconds. */
  readonly timestamp: number;
  readonly mountpoint: string;
  readonly usedBytes: number;
  readonly inodesUsed?: number;
  /** Of the whole file system. */
  readonly capacityBytes: number;
  readonly availableBytes: number;
}
