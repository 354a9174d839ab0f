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

  /** Name of the directory of a pod below `pods`. */
  podDirectory(uid: string): string {
    return segment(uid);
  }

  volume(uid: string, plugin: string, name: string): string {
    return join(this.pod(uid), 'volumes', `kubernetes.io~${plugin}`, segment(name));
  }

  /**
   * Mount points of the sub paths of a volume for one container. Each sub path is mounted as it was when it was
   * checked.
   */
  subPaths(uid: string, volume: string, container: string): string {
    return join(this.pod(uid), 'volume-subpaths', segment(volume), segment(container));
  }

  /** Volumes of FlexVolume drivers. */
  flexVolume(uid: string, driver: string, name: string): string {
    return join(this.pod(uid), 'volumes', segment(driver.replace('/', '~')), segment(name));
  }

  /** Files that volume plugins keep about a pod. */
  podPlugins(uid: string): string {
    return join(this.pod(uid), 'plugins');
  }

  /** Mount point of a device that several pods share. */
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

  /** Files that the agent keeps about the containers of a pod. */
  containers(uid: string): string {
    return `${this.pod(uid)}/containers`;
  }

  /** Termination message of one instance of a container. Names of containers contain no underscores. */
  messageFile(uid: string, name: string, attempt: number): string {
    return `${this.containers(uid)}/${segment(name)}_${attempt}.termination-log`;
  }

  /** The file that contains the path of the cgroup of the pod. */
  cgroupNote(uid: string): string {
    return `${this.pod(uid)}/cgroup`;
  }

  hostsFile(uid: string): string {
    return `${this.pod(uid)}/etc-hosts`;
  }

  podLogs(uid: string): string {
    return `${this.#logs}/${segment(uid)}`;
  }

  /** Symbolic links to container logs, named for people and log collectors. */
  containerLogs(): string {
    return join(this.logRoot, 'containers');
  }
}

/** Names in the API contain no separators, but the UID in a manifest can be any text. */
function segment(name: string): string {
  const clean = name.replace(/[/\\\0]/g, '_');
  return clean === '' || clean === '.' || clean === '..' ? `_${clean}` : clean;
}
