import type { coreV1, Pod } from '@keelson/kinds';
import type { ObjectReader } from '../../environment/object-reader.ts';
import { uidOf } from '../../pods/pod-spec-words.ts';
import type { AgentPaths } from '../agent-paths.ts';
import type { HostAccess } from '../host/host-access.ts';
import type { Mounter } from '../mounter.ts';
import { VolumeProblem } from '../volume-problem.ts';
import { type FlexDriver, FlexDrivers } from './flex-drivers.ts';
import { flexOptions } from './flex-options.ts';
import { type FlexRecord, FlexRecords } from './flex-records.ts';

export interface FlexVolumesOptions {
  readonly paths: AgentPaths;
  readonly host: HostAccess;
  readonly mounter: Mounter;
  readonly pluginDirectory: string;
  readonly nodeName: string;
  /**
   * The device of a volume that the attach/detach controller attached to this node, by the volume's name in the status of the node; undefined
   * while it is not attached. Absent: the agent attaches and detaches by itself.
   */
  readonly attachedDevice: ((name: string) => Promise<string | undefined>) | undefined;
  /** The volumes in use have changed. */
  readonly onInUse: () => void;
}

type Source = coreV1.FlexVolumeSource;

/**
 * Volumes of third parties' drivers: attach, waitforattach and mountdevice for those that attach, then mount; the way back in reverse. What
 * a driver does not support is done by plain mounts.
 */
export class FlexVolumes {
  readonly #options: FlexVolumesOptions;
  readonly #drivers: FlexDrivers;
  readonly #records: FlexRecords;
  #inUse: readonly string[] = [];
  /** Of each driver one step at a time: what two pods share is attached once and detached once. */
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(options: FlexVolumesOptions) {
    this.#options = options;
    this.#drivers = new FlexDrivers(options.pluginDirectory, options.host);
    this.#records = new FlexRecords(options.paths);
  }

  /** Names, as the status of the node knows them, of the volumes that attach and that pods use. */
  inUse(): readonly string[] {
    return this.#inUse;
  }

  /** Learns what an agent before this one left: what is in use must not be forgotten for a moment, or it is detached. */
  start(): Promise<void> {
    return this.#tellInUse();
  }

  /** @throws VolumeProblem */
  provide(pod: Pod, name: string, source: Source, objects: ObjectReader): Promise<string> {
    return this.#inTurn(source.driver, () => this.#provide(pod, name, source, objects));
  }

  /** Undoes everything for a pod. @throws VolumeProblem when a driver fails: then nothing may be deleted */
  async remove(uid: string): Promise<void> {
    for (const record of await this.#records.all()) {
      if (record.uid === uid) await this.#inTurn(record.driver, () => this.#removeOne(record));
    }
  }

  async #provide(pod: Pod, name: string, source: Source, objects: ObjectReader): Promise<string> {
    const { paths, host, mounter } = this.#options;
    const uid = uidOf(pod);
    const driver = await this.#drivers.get(source.driver);
    const directory = paths.flexVolume(uid, source.driver, name);
    const known = (await this.#records.all()).find((record) => record.uid === uid && record.volume === name);
    if (known !== undefined && (await this.#isDone(known))) {
      await this.#tellInUse();
      return directory;
    }
    const options = await flexOptions(pod, name, source, objects);
    const sharedName = driver.attaches ? await sharedNameOf(driver, name, options) : name;
    const attachedHere = driver.attaches && this.#options.attachedDevice === undefined;
    const record: FlexRecord = { uid, volume: name, driver: driver.name, sharedName, attaches: driver.attaches, attachedHere };
    await this.#records.put(record);
    await this.#tellInUse();
    if (driver.attaches) await this.#attach(driver, record, source, options);
    await host.files.makeDirectory(directory, 0o750);
    const answer = await driver.call('mount', directory, options);
    if (answer === undefined) {
      if (!driver.attaches) throw new VolumeProblem(`volume plugin ${driver.name} supports no mount`);
      const bind = { type: '', source: this.#deviceMount(record), target: directory };
      await mounter.mount({ ...bind, options: ['bind', ...readOnly(source)] });
    }
    const gid = pod.spec.securityContext?.fsGroup;
    if (driver.fsGroup && typeof gid === 'number' && source.readOnly !== true) await host.files.giveToGroup(directory, gid);
    await host.files.write(this.#doneFile(record), await this.#bootId(), 0o640);
    return directory;
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
    if (device === '') throw new VolumeProblem(`volume plugin ${driver.name} names no device to mount`);
    await mounter.mount({ type: source.fsType ?? '', source: device, target, options: readOnly(source) });
  }

  async #removeOne(record: FlexRecord): Promise<void> {
    const { paths, host, mounter, nodeName } = this.#options;
    // What a driver did that has gone since is undone as far as plain mounts are.
    const driver = await this.#drivers.get(record.driver).catch(() => undefined);
    const directory = paths.flexVolume(record.uid, record.driver, record.volume);
    // A mount that never came about needs no way back; a driver that is asked all the same may refuse for ever.
    if ((await host.files.info(directory, 'follow')) !== undefined) {
      if ((await driver?.call('unmount', directory)) === undefined) await mounter.unmountBelow(directory);
      if (await mounter.isMounted(directory)) throw new VolumeProblem(`${directory} is still mounted`);
    }
    const others = (await this.#records.all()).filter(
      (other) => other !== record && other.driver === record.driver && other.sharedName === record.sharedName,
    );
    if (record.attaches && others.length === 0) {
      const target = this.#deviceMount(record);
      if ((await host.files.info(target, 'follow')) !== undefined) {
        if ((await driver?.call('unmountdevice', target)) === undefined) await mounter.unmountBelow(target);
        if (await mounter.isMounted(target)) throw new VolumeProblem(`${target} is still mounted`);
        await host.files.remove(target);
      }
      if (record.attachedHere) await driver?.call('detach', record.sharedName, nodeName);
    }
    await host.files.remove(directory);
    await host.files.remove(this.#doneFile(record));
    await this.#records.delete(record);
    await this.#tellInUse();
  }

  /** A driver may fill the directory without a mount, so that it is done is written down; a start of the machine undoes mounts. */
  async #isDone(record: FlexRecord): Promise<boolean> {
    const done = await this.#options.host.files.read(this.#doneFile(record)).catch(() => undefined);
    return done?.equals(await this.#bootId()) === true;
  }

  #bootId(): Promise<Buffer> {
    return this.#options.host.files.read('/proc/sys/kernel/random/boot_id');
  }

  #doneFile({ uid, volume }: FlexRecord): string {
    return `${this.#options.paths.podPlugins(uid)}/${volume}.mounted`;
  }

  #deviceMount({ driver, sharedName }: FlexRecord): string {
    return this.#options.paths.deviceMount(driver, sharedName);
  }

  async #tellInUse(): Promise<void> {
    const attaching = (await this.#records.all()).filter(({ attaches }) => attaches);
    const names = [...new Set(attaching.map(uniqueName))].sort();
    if (names.join('\n') === this.#inUse.join('\n')) return;
    this.#inUse = names;
    this.#options.onInUse();
  }

  #inTurn<T>(driver: string, task: () => Promise<T>): Promise<T> {
    const result = (this.#queues.get(driver) ?? Promise.resolve()).then(task);
    this.#queues.set(
      driver,
      result.catch(() => {}),
    );
    return result;
  }
}

function uniqueName({ driver, sharedName }: FlexRecord): string {
  return `flexvolume-${driver}/${sharedName}`;
}

async function sharedNameOf(driver: FlexDriver, name: string, options: string): Promise<string> {
  return (await driver.call('getvolumename', options))?.volumeName ?? name;
}

function readOnly(source: Source): string[] {
  return source.readOnly === true ? ['ro'] : [];
}
