import type { NamespaceOptions } from './namespaces.ts';
import type { LinuxResources } from './resources.ts';

/** Id of a sandbox, which the runtime assigns and never uses again. */
export type SandboxId = string;

/** Identifies the pod of a sandbox. Two sandboxes that exist at once differ in at least one field. */
export interface SandboxMetadata {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  /** Number of the sandbox of the pod: 0 for the first one, higher for each further one. */
  readonly attempt: number;
}

/** The content of the pod's resolv.conf; absent: that of the machine. */
export interface DnsConfig {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
}

/** A port of the pod, which may be published at a port of the machine. */
export interface PortMapping {
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly containerPort: number;
  /** Port of the machine whose connections are forwarded to the pod; 0 or absent for none. */
  readonly hostPort?: number;
  readonly hostIp?: string;
}

/** Privileges and namespaces of a sandbox. */
export interface SandboxSecurityContext {
  readonly namespaces?: NamespaceOptions;
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly supplementalGroups?: readonly number[];
  /** Containers may be privileged only in a privileged sandbox. */
  readonly privileged?: boolean;
  readonly readonlyRootfs?: boolean;
}

/** The configuration of a new sandbox. It does not change afterwards. */
export interface PodSandboxConfig {
  readonly metadata: SandboxMetadata;
  /** Host name inside the pod; ignored when the pod uses the machine's network. */
  readonly hostname?: string;
  /** Absolute folder of the log files of the pod's containers; the runtime creates it if needed. */
  readonly logDirectory?: string;
  readonly dns?: DnsConfig;
  readonly portMappings?: readonly PortMapping[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Parent of the cgroups that the runtime creates for the pod, as a path from the root of each cgroup hierarchy. */
  readonly cgroupParent?: string;
  readonly sysctls?: Readonly<Record<string, string>>;
  readonly securityContext?: SandboxSecurityContext;
  /** Limits of the process of the sandbox itself; ignored by runtimes whose sandboxes have no process. */
  readonly resources?: LinuxResources;
}

/** State of a sandbox: `ready` until it was stopped or has failed. */
export type SandboxState = 'ready' | 'notReady';

/** An item of a list of sandboxes. */
export interface PodSandbox {
  readonly id: SandboxId;
  readonly metadata: SandboxMetadata;
  readonly state: SandboxState;
  /** Time of the creation in epoch milliseconds. */
  readonly createdAt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** The complete state of a sandbox. */
export interface PodSandboxStatus extends PodSandbox {
  /**
   * Addresses of the pod, the primary address first. A pod on the machine's network has the address of the machine.
   * Empty when the pod has no address.
   */
  readonly ips: readonly string[];
  readonly namespaces: NamespaceOptions;
}

/** Conditions that selected sandboxes meet; an absent field is no condition. */
export interface SandboxFilter {
  readonly id?: SandboxId;
  readonly state?: SandboxState;
  /** Selects sandboxes that have all of these labels with equal values. */
  readonly labels?: Readonly<Record<string, string>>;
}
