/** The parts of the OCI runtime specification that this runtime uses, with the names of its JSON form. */
export interface OciSpec {
  readonly ociVersion: string;
  readonly process: OciProcess;
  readonly root: { readonly path: string; readonly readonly: boolean };
  readonly mounts: readonly OciMount[];
  readonly linux: OciLinux;
}

export interface OciProcess {
  readonly terminal: boolean;
  readonly user: {
    readonly uid: number;
    readonly gid: number;
    readonly additionalGids: readonly number[];
    readonly umask?: number;
  };
  readonly args: readonly string[];
  readonly env: readonly string[];
  readonly cwd: string;
  readonly capabilities: OciCapabilities;
  readonly noNewPrivileges: boolean;
  readonly oomScoreAdj?: number;
  readonly apparmorProfile?: string;
  readonly selinuxLabel?: string;
}

export interface OciCapabilities {
  readonly bounding: readonly string[];
  readonly effective: readonly string[];
  readonly permitted: readonly string[];
}

export interface OciMount {
  readonly destination: string;
  readonly type: string;
  readonly source: string;
  readonly options: readonly string[];
}

export interface OciNamespace {
  readonly type: 'pid' | 'network' | 'mount' | 'ipc' | 'uts' | 'cgroup';
  /** File of an existing namespace to join; absent: a new namespace is created. */
  readonly path?: string;
}

export interface OciDevice {
  readonly path: string;
  readonly type: 'b' | 'c' | 'p';
  readonly major: number;
  readonly minor: number;
  readonly fileMode: number;
  readonly uid: number;
  readonly gid: number;
}

export interface OciDeviceRule {
  readonly allow: boolean;
  readonly type?: 'b' | 'c' | 'p';
  readonly major?: number;
  readonly minor?: number;
  readonly access: string;
}

export interface OciResources {
  readonly devices?: readonly OciDeviceRule[];
  readonly memory?: { readonly limit?: number; readonly swap?: number };
  readonly cpu?: {
    readonly shares?: number;
    readonly quota?: number;
    readonly period?: number;
    readonly cpus?: string;
    readonly mems?: string;
  };
  readonly pids?: { readonly limit: number };
}

export interface OciLinux {
  readonly namespaces: readonly OciNamespace[];
  readonly cgroupsPath: string;
  readonly resources: OciResources;
  readonly devices: readonly OciDevice[];
  readonly rootfsPropagation?: 'rslave' | 'rshared';
  readonly maskedPaths: readonly string[];
  readonly readonlyPaths: readonly string[];
  readonly seccomp?: object;
}
