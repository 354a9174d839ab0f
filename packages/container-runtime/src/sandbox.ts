import type { NamespaceOptions } from './namespaces.ts';
import type { LinuxResources } from './resources.ts';

/** Name of a sandbox, chosen by the runtime; never reused. */
export type SandboxId = string;

/** Identifies the pod of a sandbox. Two sandboxes that exist at once differ in at least one field. */
export interface SandboxMetadata {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  /** Counts the sandboxes of one pod, from 0. */
  readonly attempt: number;
}

/** The content of the pod's resolv.conf; absent: that of the machine. */
export interface DnsConfig {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
}

/** A port of the machine that leads to a port of the pod. */
export interface PortMapping {
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly containerPort: number;
  /** 0 or absent: not published. */
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
  /** Cgroup, as a path from the root of each hierarchy, below which the runtime places the pod's own. */
  readonly cgroupParent?: string;
  readonly sysctls?: Readonly<Record<string, string>>;
  readonly securityContext?: SandboxSecurityContext;
  /** Limits of the sandbox's own process, where there is one. */
  readonly resources?: LinuxResources;
}

/** `ready` until the sandbox has stopped. */
export type SandboxState = 'ready' | 'notReady';

/** A sandbox as lists show it. */
export interface PodSandbox {
  readonly id: SandboxId;
  readonly metadata: SandboxMetadata;
  readonly state: SandboxState;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** The complete state of a sandbox. */
export interface PodSandboxStatus extends PodSandbox {
  /**
   * Addresses of the pod, the main one first; the machine's own for a pod on the machine's network; empty when it has
   * none.
   */
  readonly ips: readonly string[];
  readonly namespaces: NamespaceOptions;
}

/** Which sandboxes; absent fields select all. */
export interface SandboxFilter {
  readonly id?: SandboxId;
  readonly state?: SandboxState;
  /** All of these labels with exactly these values. */
  readonly labels?: Readonly<Record<string, string>>;
}
