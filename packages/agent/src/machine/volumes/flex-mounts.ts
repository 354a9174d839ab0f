import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseJsonObject } from '@keelson/core/internal';
import type { coreV1, Pod } from '@keelson/kinds';
import type { AgentPaths } from '../../base/agent-paths.ts';
import type { HostAccess } from '../host/host-access.ts';
import type { FlexDriver } from './flex-drivers.ts';
import type { Mounter } from './mounter.ts';
import { VolumeProblem } from './volume-problem.ts';

/** The state of one volume of one pod, recorded before it is mounted. */
export interface FlexRecord {
  readonly uid: string;
  readonly volume: string;
  /** `vendor/driver`. */
  readonly driver: string;
  /** The name that identifies the volume for all pods; a shared volume is attached once. */
  readonly sharedName: string;
  readonly attaches: boolean;
  /** The agent has attached the volume and must detach it. */
  readonly attachedHere: boolean;
}

/**
 * The records of all pods. Like mounts, they outlive the agent: one file for each volume in `plugins` below the
 * directory of the pod.
 */
export class FlexRecords {
  readonly #paths: AgentPaths;
  #records: Promise<Map<string, FlexRecord>> | undefined;

  constructor(paths: AgentPaths) {
    this.#paths = paths;
  }

  async all(): Promise<readonly FlexRecord[]> {
    return [...(await this.#load()).values()];
  }

  async put(record: FlexRecord): Promise<void> {
    const file = this.#fileOf(record);
    const records = await this.#load();
    await mkdir(this.#paths.podPlugins(record.uid), { recursive: true, mode: 0o750 });
    await writeFile(file, JSON.stringify(record), { mode: 0o640 });
    records.set(file, record);
  }

  async delete(record: FlexRecord): Promise<void> {
    const file = this.#fileOf(record);
    await rm(file, { force: true });
    (await this.#load()).delete(file);
  }

  #fileOf({ uid, volume }: FlexRecord): string {
    return join(this.#paths.podPlugins(uid), `${volume}.flex.json`);
  }

  #load(): Promise<Map<string, FlexRecord>> {
    this.#records ??= this.#read();
    return this.#records;
  }

  async #read(): Promise<Map<string, FlexRecord>> {
    const found = new Map<string, FlexRecord>();
    for (const uid of await readdir(this.#paths.pods()).catch(() => [])) {
      const directory = this.#paths.podPlugins(uid);
      for (const name of await readdir(directory).catch(() => [])) {
        if (!name.endsWith('.flex.json')) continue;
        const record = parseRecord(await readFile(join(directory, name), 'utf8').catch(() => ''));
        if (record !== undefined) found.set(this.#fileOf(record), record);
      }
    }
    return found;
  }
}

/** A truncated record was written before anything was mounted. */
function parseRecord(text: string): FlexRecord | undefined {
  const value = parseJsonObject(text);
  return typeof value?.['uid'] === 'string' ? (value as unknown as FlexRecord) : undefined;
}

export interface FlexMountsOptions {
  readonly paths: AgentPaths;
  readonly host: HostAccess;
  readonly mounter: Mounter;
  readonly nodeName: string;
  /**
   * The device of a volume that the attach/detach controller has attached to this node, by the name of the volume in
   * the status of the node; undefined while it is not attached. Absent: the agent attaches and detaches volumes.
   */
  readonly attachedDevice: ((name: string) => Promise<string | undefined>) | undefined;
}

type Source = coreV1.FlexVolumeSource;

/** Permission bits for the group: read, write, and inheritance by new files. */
const groupMode = 0o2770;

/** Mounts and unmounts volumes of a driver. Commands that a driver does not support are replaced by plain mounts. */
export class FlexMounts {
  readonly #options: FlexMountsOptions;

  constructor(options: FlexMountsOptions) {
    this.#options = options;
  }

  directoryOf({ uid, driver, volume }: FlexRecord): string {
    return this.#options.paths.flexVolume(uid, driver, volume);
  }

  /** Attaches the volume if the driver supports it, then mounts it. @throws VolumeProblem */
  async mount(driver: FlexDriver, record: FlexRecord, pod: Pod, source: Source, options: string): Promise<void> {
    const { host, mounter } = this.#options;
    const directory = this.directoryOf(record);
    if (driver.attaches) await this.#attach(driver, record, source, options);
    await host.files.makeDirectory(directory, 0o750);
    const answer = await driver.call('mount', directory, options);
    if (answer === undefined) {
      if (!driver.attaches) throw new VolumeProblem(`volume plugin ${driver.name} does not support mount`);
      const bind = { type: '', source: this.#deviceMount(record), target: directory };
      await mounter.mount({ ...bind, options: ['bind', ...readOnly(source)] });
    }
    if (driver.fsGroup && source.readOnly !== true) await this.#giveToGroup(pod, directory);
  }

  /** With the policy OnRootMismatch only the root of the volume is checked. */
  async #giveToGroup(pod: Pod, directory: string): Promise<void> {
    const { files } = this.#options.host;
    const { fsGroup, fsGroupChangePolicy } = pod.spec.securityContext ?? {};
    if (typeof fsGroup !== 'number') return;
    const root = await files.info(directory, 'follow');
    const fits = root?.gid === fsGroup && (root.mode & groupMode) === groupMode;
    if (fsGroupChangePolicy !== 'OnRootMismatch' || !fits) await files.giveToGroup(directory, fsGroup);
  }

  /**
   * Unmounts the volume. When the driver has been removed, only plain mounts are undone.
   *
   * @throws VolumeProblem
   */
  async unmount(driver: FlexDriver | undefined, record: FlexRecord): Promise<void> {
    await this.#unmountWith(driver, 'unmount', this.directoryOf(record));
  }

  /** Detaches a volume that no pod uses any more. @throws VolumeProblem */
  async detach(driver: FlexDriver | undefined, record: FlexRecord): Promise<void> {
    await this.#unmountWith(driver, 'unmountdevice', this.#deviceMount(record));
    if (record.attachedHere) await driver?.call('detach', record.sharedName, this.#options.nodeName);
  }

  async #attach(driver: FlexDriver, record: FlexRecord, source: Source, options: string): Promise<void> {
    const { host, mounter, nodeName, attachedDevice } = this.#options;
    let device: string | undefined;
    if (attachedDevice === undefined) device = (await driver.call('attach', options, nodeName))?.device;
    else {
      const name = uniqueName(record);
      device = await attachedDevice(name);
      if (device === undefined)
        throw new VolumeProblem(`volume not attached according to the status of node ${nodeName}: ${name}`);
    }
    const waited = await driver.call('waitforattach', device ?? '', options);
    device = waited?.device ?? device ?? '';
    const target = this.#deviceMount(record);
    await host.files.makeDirectory(target, 0o750);
    if ((await driver.call('mountdevice', target, device, options)) !== undefined) return;
    if (device === '') throw new VolumeProblem(`volume plugin ${driver.name} returned no device to mount`);
    await mounter.mount({ type: source.fsType ?? '', source: device, target, options: readOnly(source) });
  }

  /** A volume that was never mounted is not unmounted: a driver could fail this forever. */
  async #unmountWith(
    driver: FlexDriver | undefined,
    command: 'unmount' | 'unmountdevice',
    directory: string,
  ): Promise<void> {
    const { host, mounter } = this.#options;
    if ((await host.files.info(directory, 'follow')) === undefined) return;
    if ((await driver?.call(command, directory)) === undefined) await mounter.unmountBelow(directory);
    if (await mounter.isMounted(directory)) throw new VolumeProblem(`${directory} is still mounted`);
    await host.files.remove(directory);
  }

  #deviceMount({ driver, sharedName }: FlexRecord): string {
    return this.#options.paths.deviceMount(driver, sharedName);
  }
}

/** The name of a volume in the status of the node. */
export function uniqueName({ driver, sharedName }: FlexRecord): string {
  return `flexvolume-${driver}/${sharedName}`;
}

function readOnly(source: Source): string[] {
  return source.readOnly === true ? ['ro'] : [];
}
