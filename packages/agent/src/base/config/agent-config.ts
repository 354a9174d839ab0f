import type { Taint } from '@keelson/kinds';
import type { CgroupConfig } from './cgroup-config.ts';
import type { Threshold } from './eviction-threshold.ts';

/** Sources whose pods have a permission; `*` stands for all sources. */
export type AllowedSources = readonly ('file' | 'http' | 'api' | '*')[];

/** The container runtime that the options select: see docs/reference/agent-rules.md#choice-of-the-runtime. */
export type RuntimeChoice =
  /**
   * The engine at the default socket if it responds; otherwise the bundled runtime: `oci` where it can run, else
   * `process`. The selected runtime is served as CRI at `shimEndpoint`.
   */
  | { readonly kind: 'default'; readonly engineEndpoint: string; readonly shimEndpoint: string }
  /** The Docker Engine API at a unix socket; also served at `shimEndpoint` if that is given. */
  | { readonly kind: 'engine'; readonly endpoint: string; readonly shimEndpoint?: string }
  | { readonly kind: 'cri'; readonly endpoint: string; readonly imageEndpoint: string }
  /** An OCI binary; `path` undefined = the first in PATH. */
  | { readonly kind: 'oci'; readonly path: string | undefined; readonly supervisorEndpoint: string | undefined }
  /** Processes of this machine, without a container engine. */
  | { readonly kind: 'process' };

/** Access to the API server. */
export interface ApiAccessConfig {
  /** A kubeconfig: clusters, users and contexts. */
  readonly clusterconfig: string;
  /** A kubeconfig with which a client certificate is requested when `clusterconfig` cannot be used. */
  readonly bootstrap: string | undefined;
  /** The client certificate is renewed before it expires. */
  readonly rotateCertificates: boolean;
  readonly qps: number;
  readonly burst: number;
  /** Full media type, as given in the option. */
  readonly contentType: string;
  /** The probability that a request is delayed or fails; 0 = never. */
  readonly chaosChance: number;
}

/** The process of the agent. */
export interface ProcessConfig {
  /** Locked while the agent runs. */
  readonly lockFile: string | undefined;
  readonly exitOnLockContention: boolean;
  readonly maxOpenFiles: number;
  readonly oomScoreAdj: number;
  /** Kernel settings that differ from the expected ones are an error; false = they are corrected. */
  readonly protectKernelDefaults: boolean;
  /** Uncaught errors end the process; false = they are logged. */
  readonly reallyCrash: boolean;
}

export interface SourceConfig {
  readonly manifestPath: string | undefined;
  readonly manifestUrl: string | undefined;
  /** In the order of the option; a name may occur more than once. */
  readonly manifestUrlHeaders: readonly (readonly [name: string, value: string])[];
  readonly fileCheckMs: number;
  readonly httpCheckMs: number;
  readonly runOnce: boolean;
  readonly hostNetwork: AllowedSources;
  readonly hostPid: AllowedSources;
  readonly hostIpc: AllowedSources;
  readonly checkpointPath: string | undefined;
}

export interface ServerConfig {
  /** False: the main port is closed. */
  readonly enabled: boolean;
  readonly address: string;
  readonly port: number;
  /** 0 = closed. */
  readonly readOnlyPort: number;
  readonly healthzAddress: string;
  /** 0 = closed. */
  readonly healthzPort: number;
  /** 0 = closed. */
  readonly statsPort: number;
  readonly debuggingHandlers: boolean;
  /** Exec, attach and port-forward connections without traffic for this time are closed; 0 = never. */
  readonly streamingIdleMs: number;
  /** The debugging handlers report how long the event loop was blocked. */
  readonly contentionProfiling: boolean;
  readonly tlsCertFile: string | undefined;
  readonly tlsPrivateKeyFile: string | undefined;
  readonly certDir: string;
  readonly anonymousAuth: boolean;
  readonly clientCaFile: string | undefined;
  /**
   * Bearer tokens are reviewed by the API server, and results are cached for `cacheMs`; undefined = tokens are
   * rejected.
   */
  readonly tokenWebhook: { readonly cacheMs: number } | undefined;
  /** Requests are authorized by the API server; undefined = every request is allowed. */
  readonly accessWebhook: { readonly allowedMs: number; readonly refusedMs: number } | undefined;
}

export interface PodLimits {
  readonly maxPods: number;
  /** 0 = no limit per core. */
  readonly podsPerCore: number;
  readonly allowPrivileged: boolean;
}

export interface ImageConfig {
  /** The image of the container that owns the namespaces of a pod. */
  readonly infraImage: string;
  readonly pullProgressDeadlineMs: number;
  readonly serializePulls: boolean;
  /** 0 = unlimited. */
  readonly registryQps: number;
  readonly registryBurst: number;
  readonly gcHighPercent: number;
  readonly gcLowPercent: number;
  readonly minimumTtlMs: number;
  /** Files with credentials for the image registries of cloud providers. */
  readonly cloudAConfig?: string | undefined;
  readonly cloudBKey?: string | undefined;
}

export interface NetworkConfig {
  /** '' = the network of the runtime. */
  readonly plugin: '' | 'cni' | 'bridge';
  /** Folders separated by commas. */
  readonly cniBinDir: string;
  readonly cniConfDir: string;
  /** 0 = the plugin's default. */
  readonly mtu: number;
  readonly hairpinMode: 'promiscuous-bridge' | 'hairpin-veth' | 'none';
  /** '' = none. For nodes without an API server. */
  readonly podCidr: string;
  readonly makeIptablesUtilChains: boolean;
  readonly iptablesDropBit: number;
  readonly iptablesMasqueradeBit: number;
}

export interface DnsConfig {
  readonly servers: readonly string[];
  readonly domain: string;
  /** '' = the resolver configuration of the host is not used. */
  readonly resolvConf: string;
}

/** The cloud provider that supplies facts about the machine. */
export interface CloudConfig {
  /** '' = none; `external` = another component of the cluster supplies them; otherwise the name of a provider. */
  readonly provider: string;
  readonly configPath: string | undefined;
}

/** Facts about this machine from the cloud provider. */
export interface CloudInstance {
  readonly providerId?: string;
  readonly instanceType?: string;
  readonly zone?: string;
  readonly region?: string;
  /** Replaces the addresses of the machine. */
  readonly addresses?: readonly { readonly type: string; readonly address: string }[];
}

export interface NodeConfig {
  /** Undefined = detected. */
  readonly ip: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly providerId: string | undefined;
  readonly register: boolean;
  readonly statusUpdateMs: number;
  readonly enableControllerAttachDetach: boolean;
  readonly cloud: CloudConfig;
  /** The answer of the cloud provider; absent without a provider. */
  readonly instance?: CloudInstance;
}

/** Assignment of CPUs to containers. */
export interface CpuManagerConfig {
  /** `static`: containers of guaranteed pods that request whole CPUs get them exclusively. */
  readonly policy: 'none' | 'static';
  readonly reconcileMs: number;
}

/** Thresholds and grace periods of evictions: see docs/reference/agent-rules.md#eviction. */
export interface EvictionConfig {
  /** When empty, nothing is observed and no pod is evicted. */
  readonly thresholds: readonly Threshold[];
  /**
   * Upper limit of the grace period of pods evicted by a soft threshold, in seconds; negative = the grace period of the
   * pod.
   */
  readonly maxPodGraceSeconds: number;
  /** Time that a pressure condition remains after its threshold was last met. */
  readonly transitionMs: number;
  /** Memory thresholds are checked more often than the other thresholds. */
  readonly watchMemory: boolean;
  /** The amounts of hard thresholds are subtracted from the allocatable resources. */
  readonly reservesThresholds: boolean;
}

/** Amounts by resource name, in canonical quantity text. */
export type ResourceAmounts = Readonly<Record<string, string>>;

/**
 * The configuration of all parts of the agent, made from the options and the machine: typed, cross-checked and frozen.
 * Every option that has an effect is represented here; a part receives the group that it needs.
 */
export interface AgentConfig {
  readonly nodeName: string;
  readonly rootDir: string;
  /** Undefined: the agent runs without an API server. */
  readonly api: ApiAccessConfig | undefined;
  readonly sources: SourceConfig;
  readonly server: ServerConfig;
  readonly runtime: RuntimeChoice;
  /** Deadline of runtime calls other than pull, logs, exec and attach. */
  readonly runtimeRequestTimeoutMs: number;
  /** False: the containers of a pod share one PID namespace. */
  readonly isolatePids: boolean;
  readonly images: ImageConfig;
  readonly network: NetworkConfig;
  readonly dns: DnsConfig;
  readonly node: NodeConfig;
  readonly limits: PodLimits;
  /** Names, or prefixes that end in `*`, of sysctls that pods may set in addition to the safe ones. */
  readonly allowedUnsafeSysctls: readonly string[];
  readonly clusterReserved: ResourceAmounts;
  readonly systemReserved: ResourceAmounts;
  readonly eviction: EvictionConfig;
  /** Longest time between two reconciliations of a pod. */
  readonly syncMs: number;
  /** 0 = volume usage is not measured. */
  readonly volumeStatsMs: number;
  readonly volumePluginDir: string;
  readonly mounterPath: string | undefined;
  readonly checkNodeCapabilities: boolean;
  /** The agent runs in a container: files of volumes and mounts are those of the mount namespace of the host. */
  readonly containerized: boolean;
  readonly seccompRoot: string;
  readonly cpuCfsQuota: boolean;
  readonly cgroups: CgroupConfig;
  readonly cpuManager: CpuManagerConfig;
  readonly events: { readonly qps: number; readonly burst: number };
  /** All feature gates with their effective values. */
  readonly gates: Readonly<Record<string, boolean>>;
  readonly process: ProcessConfig;
}
