import type { coreV1, Pod } from '@keelson/kinds';
import type { ObjectReader } from '../../base/pod/object-reader.ts';
import { uidOf } from '../../base/pod/pod-spec.ts';
import { type FlexDriver, FlexDrivers, flexOptions } from './flex-drivers.ts';
import { FlexMounts, type FlexMountsOptions, type FlexRecord, FlexRecords, uniqueName } from './flex-mounts.ts';

export interface FlexVolumesOptions extends FlexMountsOptions {
  readonly pluginDirectory: string;
  /** The volumes in use have changed. */
  readonly onInUse: () => void;
}

type Source = coreV1.FlexVolumeSource;

/**
 * Volumes of third parties' drivers: attach, waitforattach and mountdevice for those that attach, then mount; the way
 * back in reverse. What a driver does not support is done by plain mounts.
 */
export class FlexVolumes {
  readonly #options: FlexVolumesOptions;
  readonly #drivers: FlexDrivers;
  readonly #mounts: FlexMounts;
  readonly #records: FlexRecords;
  #inUse: readonly string[] = [];
  /** Of each driver one step at a time: what two pods share is attached once and detached once. */
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(options: FlexVolumesOptions) {
    this.#options = options;
    this.#drivers = new FlexDrivers(options.pluginDirectory, options.host);
    this.#mounts = new FlexMounts(options);
    this.#records = new FlexRecords(options.paths);
  }

  /** Names, as the status of the node knows them, of the volumes that attach and that pods use. */
  inUse(): readonly string[] {
    return this.#inUse;
  }

  /**
   * Learns what an agent before this one left: what is in use must not be forgotten for a moment, or it is detached.
   */
  start(): Promise<void> {
    return this.#tellInUse();
  }

  /** @throws VolumeProblem */
  provide(pod: Pod, name: string, source: Source, objects: ObjectReader): Promise<string> {
    return this.#inTurn(source.driver, () => this.#provide(pod, name, source, objects));
  }

  /** Undoes everything for a pod. @throws VolumeProblem when a driver fails: then nothing may be deleted */
  async remove(uid: string): Promise<void> {
    const { paths } = this.#options;
    for (const record of await this.#records.all()) {
      // Who knows only the directory of a pod does not know its UID to the letter.
      if (paths.pod(record.uid) === paths.pod(uid)) await this.#inTurn(record.driver, () => this.#removeOne(record));
    }
  }

  async #provide(pod: Pod, name: string, source: Source, objects: ObjectReader): Promise<string> {
    const { host, attachedDevice } = this.#options;
    const uid = uidOf(pod);
    const known = (await this.#records.all()).find((record) => record.uid === uid && record.volume === name);
    if (known !== undefined && (await this.#isDone(known))) {
      await this.#tellInUse();
      return this.#mounts.directoryOf(known);
    }
    const driver = await this.#drivers.get(source.driver);
    const options = await flexOptions(pod, name, source, objects);
    const sharedName = driver.attaches ? await sharedNameOf(driver, name, options) : name;
    const attachedHere = driver.attaches && attachedDevice === undefined;
    const record: FlexRecord = {
      uid,
      volume: name,
      driver: driver.name,
      sharedName,
      attaches: driver.attaches,
      attachedHere,
    };
    await this.#records.put(record);
    await this.#tellInUse();
    await this.#mounts.mount(driver, record, pod, source, options);
    await host.files.write(this.#doneFile(record), await this.#bootId(), 0o640);
    return this.#mounts.directoryOf(record);
  }

  async #removeOne(record: FlexRecord): Promise<void> {
    const { host } = this.#options;
    const driver = await this.#drivers.find(record.driver);
    await this.#mounts.unmount(driver, record);
    const shared = (await this.#records.all()).some(
      (other) => other !== record && other.driver === record.driver && other.sharedName === record.sharedName,
    );
    if (record.attaches && !shared) await this.#mounts.detach(driver, record);
    await host.files.remove(this.#doneFile(record));
    await this.#records.delete(record);
    await this.#tellInUse();
  }

  /**
   * A driver may fill the directory without a mount, so that it is done is written down; a start of the machine undoes
   * mounts.
   */
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

async function sharedNameOf(driver: FlexDriver, name: string, options: string): Promise<string> {
  return (await driver.call('getvolumename', options))?.volumeName ?? name;
}
