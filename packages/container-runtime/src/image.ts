/** The parts of an image's configuration that apply to the containers of the image. */
export interface ImageConfig {
  readonly user?: string;
  readonly env?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly cmd?: readonly string[];
  readonly workingDir?: string;
  readonly stopSignal?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Paths of the volumes that the image declares. The runtime does not create volumes for them. */
  readonly volumes?: readonly string[];
}

/** An image in the store of the runtime. */
export interface Image {
  /** Digest of the image's configuration, `sha256:...`; for a built-in image, a name that the runtime defines. */
  readonly id: string;
  /** References of the image with a tag. */
  readonly repoTags: readonly string[];
  /** References of the image with a digest. */
  readonly repoDigests: readonly string[];
  readonly sizeBytes: number;
  /** User id in the image's configuration; absent if the configuration has none or a user name. */
  readonly uid?: number;
  readonly username?: string;
  /** Whether the image is exempt from image garbage collection. */
  readonly pinned: boolean;
  readonly config: ImageConfig;
}

/** Credentials of a registry. Of several, the first one in the order of the fields is used. */
export interface ImageAuth {
  readonly registryToken?: string;
  readonly identityToken?: string;
  readonly username?: string;
  readonly password?: string;
  readonly serverAddress?: string;
}

/** Progress of a pull. */
export interface PullProgress {
  /** Received bytes of all layers together. */
  readonly receivedBytes: number;
  /** Size of all layers together; absent while it is unknown. */
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
  /** Time of the measurement in epoch milliseconds. */
  readonly timestamp: number;
  readonly mountpoint: string;
  readonly usedBytes: number;
  readonly inodesUsed?: number;
  /** Capacity of the file system, including the part that others use. */
  readonly capacityBytes: number;
  readonly availableBytes: number;
}
