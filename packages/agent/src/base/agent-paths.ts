import { join } from 'node:path';

/** Paths of the agent's files: see docs/reference/agent-rules.md#files-of-the-agent. All paths are absolute. */
export class AgentPaths {
  readonly rootDir: string;
  readonly logRoot: string;
  readonly #pods: string;
  readonly #logs: string;

  constructor(rootDir: string, logRoot: string) {
    this.rootDir = rootDir;
    this.logRoot = logRoot;
    this.#pods = join(rootDir, 'pods');
    this.#logs = join(logRoot, 'pods');
  }

  pods(): string {
    return this.#pods;
  }

  pod(uid: string): string {
    return `${this.#pods}/${this.podDirectory(uid)}`;
  }

  /** Name of a pod's directory among those of the others. */
  podDirectory(uid: string): string {
    return segment(uid);
  }

  volume(uid: string, plugin: string, name: string): string {
    return join(this.pod(uid), 'volumes', `kubernetes.io~${plugin}`, segment(name));
  }

  /** Where parts of volumes are mounted for one container, as they were when they were checked. */
  subPaths(uid: string, volume: string, container: string): string {
    return join(this.pod(uid), 'volume-subpaths', segment(volume), segment(container));
  }

  /** Volumes of plugins of third parties. */
  flexVolume(uid: string, driver: string, name: string): string {
    return join(this.pod(uid), 'volumes', segment(driver.replace('/', '~')), segment(name));
  }

  /** What plugins of volumes keep about a pod. */
  podPlugins(uid: string): string {
    return join(this.pod(uid), 'plugins');
  }

  /** Where a device that several pods may use is mounted once. */
  deviceMount(driver: string, name: string): string {
    return join(
      this.rootDir,
      'plugins',
      'kubernetes.io',
      'flexvolume',
      segment(driver.replace('/', '~')),
      'mounts',
      segment(name),
    );
  }

  /** What the agent keeps of the containers of a pod. */
  containers(uid: string): string {
    return `${this.pod(uid)}/containers`;
  }

  /** Last words of one instance of a container. Names of containers have no underscores. */
  messageFile(uid: string, name: string, attempt: number): string {
    return `${this.containers(uid)}/${segment(name)}_${attempt}.termination-log`;
  }

  /** Says which cgroup is the pod's. */
  cgroupNote(uid: string): string {
    return `${this.pod(uid)}/cgroup`;
  }

  hostsFile(uid: string): string {
    return `${this.pod(uid)}/etc-hosts`;
  }

  podLogs(uid: string): string {
    return `${this.#logs}/${segment(uid)}`;
  }

  /** Symbolic links with names for people and collectors. */
  containerLogs(): string {
    return join(this.logRoot, 'containers');
  }
}

/** Names in the API have no separators, but UIDs of manifests are anybody's text. */
function segment(name: string): string {
  const clean = name.replace(/[/\\\0]/g, '_');
  return clean === '' || clean === '.' || clean === '..' ? `_${clean}` : clean;
}
