import { readFileSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { removeEmptyCgroup, removeIfPresent, writeAtomically } from '@keelson/container-host';
import { MonitoredSandbox, type SandboxRecord } from '@keelson/container-monitor';
import { type NetworkPlugin, networkRequest } from '@keelson/container-network';
import { type PodSandboxConfig, type PodSandboxStatus, RuntimeError } from '@keelson/container-runtime';
import { type PodPlace, podPlace } from '../bundle/pod-place.ts';
import type { OciContainer } from '../container/oci-container.ts';
import type { OciContext } from '../container/oci-context.ts';
import { areNamespacesMounted, makeNamespaces, removeNamespaces } from './namespaces.ts';
import { isHolderAlive, startHolder, stopHolder } from './pid-holder.ts';
import { hostnameOf, writePodFiles } from './pod-files.ts';

export interface SandboxParts {
  readonly around: OciContext;
  readonly network: NetworkPlugin | undefined;
  /** Parent cgroup of pods whose configuration specifies none. */
  readonly cgroupParent: string;
}

/** The record that is written when a sandbox is created. */
export interface OciSandboxRecord extends SandboxRecord {
  /** True when a network plugin was configured when the sandbox was created. */
  readonly podNetwork: boolean;
}

/** The namespaces, files and containers of a pod. */
export class OciSandbox extends MonitoredSandbox<OciContainer, OciSandboxRecord> {
  readonly place: PodPlace;
  /** Path of the pod's cgroup, which is the same in every hierarchy. */
  readonly cgroup: string;
  readonly hostname: string;
  readonly #parts: SandboxParts;
  #ips: readonly string[];

  constructor(parts: SandboxParts, record: OciSandboxRecord, ready: boolean) {
    super(parts.around, record, ready);
    const { id, config } = record;
    this.#parts = parts;
    this.place = podPlace(parts.around.state, id, config, record.podNetwork);
    this.cgroup = join('/', config.cgroupParent ?? parts.cgroupParent, id);
    this.hostname = hostnameOf(config, this.place);
    this.#ips = readAddresses(this.#addressFile);
  }

  status(nodeIp: string): PodSandboxStatus {
    const ips = this.place.network === undefined ? [nodeIp] : this.#ips;
    return { ...this.snapshot, ips: this.ready ? ips : [], namespaces: this.place.namespaces };
  }

  /** Creates the files, namespaces and network of the sandbox. After a failure the caller removes the sandbox. */
  async prepare(): Promise<void> {
    const { around, network } = this.#parts;
    const { record, place, hostname } = this;
    const sysctls = sysctlsOf(record.config, place);
    await mkdir(place.folder, { mode: 0o755 });
    await writePodFiles(place, record.config, hostname);
    await makeNamespaces(place, hostname, sysctls);
    if (place.pid !== undefined) {
      const cgroup = join(this.cgroup, 'holder');
      await startHolder(around.binary, around.programs, this.id, { ...place, pid: place.pid }, cgroup);
    }
    if (place.network === undefined || network === undefined) return;
    const { ips } = await network.add(networkRequest(this.id, place.network, record.config));
    await writeAtomically(this.#addressFile, JSON.stringify(ips));
    this.#ips = ips;
  }

  /** Whether all namespaces that containers join still exist. */
  async isWhole(): Promise<boolean> {
    const { place } = this;
    if (place.pid !== undefined && !(await isHolderAlive(place))) return false;
    return areNamespacesMounted(place);
  }

  protected override async release(): Promise<void> {
    const { around, network } = this.#parts;
    const { place } = this;
    await stopHolder(around.binary, this.id, place);
    if (place.network !== undefined && network !== undefined) {
      await network.remove({ sandboxId: this.id, netnsPath: place.network });
      await removeIfPresent(this.#addressFile);
    }
    await removeNamespaces(place);
  }

  protected override async discard(): Promise<void> {
    await rm(this.place.folder, { recursive: true, force: true });
    await removeEmptyCgroup(this.#parts.around.cgroupMountpoint, this.cgroup);
  }

  get #addressFile(): string {
    return join(this.place.folder, 'addresses.json');
  }
}

function readAddresses(path: string): readonly string[] {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as string[];
  } catch {
    return []; // not connected
  }
}

const ofIpc = [/^kernel\.(shm\w+|msg\w+|sem)$/, /^fs\.mqueue\.\w+$/];
const ofNetwork = /^net\.[\w./-]+$/;

/**
 * Converts the sysctls of a pod to paths below /proc/sys and values.
 *
 * @throws RuntimeError `InvalidArgument` for a sysctl that would affect the machine, because it is not namespaced or
 *   because the pod shares the namespace of the machine
 */
export function sysctlsOf(
  config: PodSandboxConfig,
  place: PodPlace,
): { readonly path: string; readonly value: string }[] {
  return Object.entries(config.sysctls ?? {}).map(([name, value]) => {
    // Slashes are separators in names that contain dots, such as those of interfaces.
    const path = name.includes('/') ? name : name.replaceAll('.', '/');
    const dotted = path.replaceAll('/', '.');
    const own =
      (ofNetwork.test(dotted) && place.network !== undefined) ||
      (ofIpc.some((pattern) => pattern.test(dotted)) && place.ipc !== undefined);
    if (!own || path.split('/').some((part) => part === '..' || part === ''))
      throw new RuntimeError('InvalidArgument', `sysctl "${name}" does not belong to a namespace of the pod`);
    return { path, value };
  });
}
