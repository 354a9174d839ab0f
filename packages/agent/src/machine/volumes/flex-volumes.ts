import type { coreV1, Pod } from '@keelson/kinds';
import type { ObjectReader } from '../../base/pod/object-reader.ts';
import { uidOf } from '../../base/pod/pod-spec.ts';
import { type FlexDriver, FlexDrivers, flexOptions } from './flex-drivers.ts';
import { FlexMounts, type FlexMountsOptions, type FlexRecord, FlexRecords, uniqueName } from './flex-mounts.ts';

export interface FlexVolumesOptions extends FlexMountsOptions {
  readonly pluginDirectory: string;
  /** Called when the volumes in use have changed. */
  readonly onInUse: () => void;
}

type Source = coreV1.FlexVolumeSource;

/**
 * FlexVolume volumes: attach, waitforattach and mountdevice for drivers that attach, then mount; the reverse to remove
 * them. Commands that a driver does not support are replaced by plain mounts.
 */
export class FlexVolumes {
  readonly #options: FlexVolumesOptions;
  readonly #drivers: FlexDrivers;
  readonly #mounts: FlexMounts;
  readonly #records: FlexRecords;
  #inUse: readonly string[] = [];
  /** One operation at a time for each driver: a shared volume is attached once and detached once. */
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(options: FlexVolumesOptions) {
    this.#options = options;
    this.#drivers = new FlexDrivers(options.pluginDirectory, options.host);
    this.#mounts = new FlexMounts(options);
    this.#records = new FlexRecords(options.paths);
  }

  /** Names of the attached volumes that pods use, as in the status of the node. */
  inUse(): readonly string[] {
    return this.#inUse;
  }

  /**
   * Reads the records of a previous agent: a volume in use that is missing from the status of the node would be
   * detached.
   */
  start(): Promise<void> {
    return this.#tellInUse();
  }

  /** @throws VolumeProblem */
  provide(pod: Pod, name: string, source: Source, objects: ObjectReader): Promise<string> {
    return this.#inTurn(source.driver, () => this.#provide(pod, name, source, objects));
  }

  /**
   * Unmounts and detaches all volumes of a pod. @throws VolumeProblem when a driver fails; then nothing may be deleted
   */
  async remove(uid: string): Promise<void> {
    const { paths } = this.#options;
    for (const record of await this.#records.all()) {
      // The caller may know only the name of the directory of the pod, which can differ from its UID.
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
   * A driver may provide the volume without a mount, so completion is recorded. A restart of the machine removes
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
