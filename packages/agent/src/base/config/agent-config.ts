import type { Taint } from '@keelson/kinds';
import type { CgroupConfig } from './cgroup-config.ts';
import type { Threshold } from './eviction-threshold.ts';

/** Which sources' pods may do something; `*` stands for all. */
export type AllowedSources = readonly ('file' | 'http' | 'api' | '*')[];

/** The container runtime that the options select: see docs/reference/agent-rules.md#choice-of-the-runtime. */
export type RuntimeChoice =
  /**
   * An engine that answers at the default socket; else the bundled runtime: `oci` where it can run, else `process`.
   * What was taken is served as CRI at `shimEndpoint`.
   */
  | { readonly kind: 'default'; readonly engineEndpoint: string; readonly shimEndpoint: string }
  /** The Docker Engine API at a unix socket; served at `shimEndpoint` likewise. */
  | { readonly kind: 'engine'; readonly endpoint: string; readonly shimEndpoint?: string }
  | { readonly kind: 'cri'; readonly endpoint: string; readonly imageEndpoint: string }
  /** An OCI binary; `path` undefined = the first in PATH. */
  | { readonly kind: 'oci'; readonly path: string | undefined; readonly supervisorEndpoint: string | undefined }
  /** Processes of this machine, without any engine. */
  | { readonly kind: 'process' };

/** How the API server is reached. */
export interface ApiAccessConfig {
  /** A file of clusters, users and contexts. */
  readonly clusterconfig: string;
  /** A file of the same form, with which a client certificate is asked for when the other cannot be used. */
  readonly bootstrap: string | undefined;
  /** The client certificate is renewed before it ends. */
  readonly rotateCertificates: boolean;
  readonly qps: number;
  readonly burst: number;
  /** Full media type, as given. */
  readonly contentType: string;
  /** Above 0: how likely requests are delayed, and how likely they fail. */
  readonly chaosChance: number;
}

/** The process that the agent is. */
export interface ProcessConfig {
  /** Locked while the agent runs. */
  readonly lockFile: string | undefined;
  readonly exitOnLockContention: boolean;
  readonly maxOpenFiles: number;
  readonly oomScoreAdj: number;
  /** Differing settings of the kernel are an error; otherwise they are set right. */
  readonly protectKernelDefaults: boolean;
  /** Errors that nobody caught end the process, instead of being logged. */
  readonly reallyCrash: boolean;
}

export interface SourceConfig {
  readonly manifestPath: string | undefined;
  readonly manifestUrl: string | undefined;
  /** In the order given; a name may repeat. */
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
  /** Commands and connections to ports over which nothing goes for so long are closed; 0 = never. */
  readonly streamingIdleMs: number;
  /** Tells how long the event loop was held up, among the debugging handlers. */
  readonly contentionProfiling: boolean;
  readonly tlsCertFile: string | undefined;
  readonly tlsPrivateKeyFile: string | undefined;
  readonly certDir: string;
  readonly anonymousAuth: boolean;
  readonly clientCaFile: string | undefined;
  /** The API server is asked about bearer tokens, whose answers are kept so long; undefined: tokens mean nothing. */
  readonly tokenWebhook: { readonly cacheMs: number } | undefined;
  /** The API server is asked what a caller may do; undefined: everything. */
  readonly accessWebhook: { readonly allowedMs: number; readonly refusedMs: number } | undefined;
}

export interface PodLimits {
  readonly maxPods: number;
  /** 0 = no such limit. */
  readonly podsPerCore: number;
  readonly allowPrivileged: boolean;
}

export interface ImageConfig {
  /** The image whose namespaces the containers of a pod share. */
  readonly infraImage: string;
  readonly pullProgressDeadlineMs: number;
  readonly serializePulls: boolean;
  /** 0 = unlimited. */
  readonly registryQps: number;
  readonly registryBurst: number;
  readonly gcHighPercent: number;
  readonly gcLowPercent: number;
  readonly minimumTtlMs: number;
  /** Files with credentials for the registries of clouds. */
  readonly cloudAConfig?: string | undefined;
  readonly cloudBKey?: string | undefined;
}

export interface NetworkConfig {
  /** '' = the runtime's own network. */
  readonly plugin: '' | 'cni' | 'bridge';
  /** Folders separated by commas. */
  readonly cniBinDir: string;
  readonly cniConfDir: string;
  /** 0 = the plugin's default. */
  readonly mtu: number;
  readonly hairpinMode: 'promiscuous-bridge' | 'hairpin-veth' | 'none';
  /** '' = none; meant for standalone nodes. */
  readonly podCidr: string;
  readonly makeIptablesUtilChains: boolean;
  readonly iptablesDropBit: number;
  readonly iptablesMasqueradeBit: number;
}

export interface DnsConfig {
  readonly servers: readonly string[];
  readonly domain: string;
  /** '' = no host configuration is used. */
  readonly resolvConf: string;
}

/** Where facts about the machine are asked for that only a cloud knows. */
export interface CloudConfig {
  /** '' = nowhere; `external` = by somebody else in the cluster; else the name of a provider. */
  readonly provider: string;
  readonly configPath: string | undefined;
}

/** What a cloud says of this machine. */
export interface CloudInstance {
  readonly providerId?: string;
  readonly instanceType?: string;
  readonly zone?: string;
  readonly region?: string;
  /** In place of those that the machine itself has. */
  readonly addresses?: readonly { readonly type: string; readonly address: string }[];
}

export interface NodeConfig {
  /** Undefined = found out. */
  readonly ip: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly providerId: string | undefined;
  readonly register: boolean;
  readonly statusUpdateMs: number;
  readonly enableControllerAttachDetach: boolean;
  readonly cloud: CloudConfig;
  /** What the cloud's provider said; absent without one. */
  readonly instance?: CloudInstance;
}

/** On which CPUs containers run. */
export interface CpuManagerConfig {
  /** `static`: containers that ask for whole CPUs have them to themselves. */
  readonly policy: 'none' | 'static';
  readonly reconcileMs: number;
}

/** Thresholds and grace periods of evictions: see docs/reference/agent-rules.md#eviction. */
export interface EvictionConfig {
  /** None: nothing is observed and nobody is evicted. */
  readonly thresholds: readonly Threshold[];
  /** Most seconds that pods get to end for a soft threshold; negative: what they ask for. */
  readonly maxPodGraceSeconds: number;
  /** How long a condition of pressure stays after what was last observed of it. */
  readonly transitionMs: number;
  /** Thresholds of memory are acted on without waiting for the next regular look. */
  readonly watchMemory: boolean;
  /** Pods cannot have what hard thresholds keep free. */
  readonly reservesThresholds: boolean;
}

/** Amounts by resource name, in canonical quantity text. */
export type ResourceAmounts = Readonly<Record<string, string>>;

/**
 * What the agent's parts need to know, made from the options and the machine: typed, checked against each other,
 * frozen. Every value of `AgentOptions` that has an effect arrives here; parts take the group they need.
 */
export interface AgentConfig {
  readonly nodeName: string;
  readonly rootDir: string;
  /** Undefined: the agent runs alone, without an API server. */
  readonly api: ApiAccessConfig | undefined;
  readonly sources: SourceConfig;
  readonly server: ServerConfig;
  readonly runtime: RuntimeChoice;
  /** Deadline of calls of the runtime other than pull, logs, exec and attach. */
  readonly runtimeRequestTimeoutMs: number;
  /** False: the containers of a pod share one PID namespace. */
  readonly isolatePids: boolean;
  readonly images: ImageConfig;
  readonly network: NetworkConfig;
  readonly dns: DnsConfig;
  readonly node: NodeConfig;
  readonly limits: PodLimits;
  /** Names, or prefixes that end in `*`, of what pods may set beside what is safe. */
  readonly allowedUnsafeSysctls: readonly string[];
  readonly clusterReserved: ResourceAmounts;
  readonly systemReserved: ResourceAmounts;
  readonly eviction: EvictionConfig;
  /** Longest time between two looks at a pod. */
  readonly syncMs: number;
  /** 0 = volume usage is not measured. */
  readonly volumeStatsMs: number;
  readonly volumePluginDir: string;
  readonly mounterPath: string | undefined;
  readonly checkNodeCapabilities: boolean;
  /** The agent is in a container: files of volumes and mounts are those of the host's mount namespace. */
  readonly containerized: boolean;
  readonly seccompRoot: string;
  readonly cpuCfsQuota: boolean;
  readonly cgroups: CgroupConfig;
  readonly cpuManager: CpuManagerConfig;
  readonly events: { readonly qps: number; readonly burst: number };
  /** Every gate with its effective value. */
  readonly gates: Readonly<Record<string, boolean>>;
  readonly process: ProcessConfig;
}
