import { join } from 'node:path';
import type { HostAccess } from '../host/host-access.ts';
import { callDriver, type DriverAnswer } from './flex-driver-call.ts';
import { VolumeProblem } from './volume-problem.ts';

/** A driver that has been initialised. */
export interface FlexDriver {
  /** `vendor/driver`, as pods name it. */
  readonly name: string;
  /** The volume is attached to the node before it is mounted. */
  readonly attaches: boolean;
  /** Files of the volume may be handed to the group of the pod. */
  readonly fsGroup: boolean;
  call(...words: readonly string[]): Promise<DriverAnswer | undefined>;
}

interface Known {
  readonly driver: FlexDriver;
  /** Tells one installation of the driver from the next. */
  readonly version: string;
}

/**
 * Volume plugins of third parties: executables `<vendor>~<driver>/<driver>` below --volume-plugin-dir. The directory is
 * looked at whenever a driver is needed, so one that was added, replaced or taken away counts at once.
 */
export class FlexDrivers {
  readonly #directory: string;
  readonly #host: HostAccess;
  readonly #known = new Map<string, Known>();

  constructor(directory: string, host: HostAccess) {
    this.#directory = directory;
    this.#host = host;
  }

  /** @throws VolumeProblem when there is no such driver, or it cannot be initialised */
  async get(name: string): Promise<FlexDriver> {
    const driver = await this.find(name);
    if (driver === undefined)
      throw new VolumeProblem(`no volume plugin matched: there is no driver ${name} in ${this.#directory}`);
    return driver;
  }

  /** Undefined when there is no such driver. @throws VolumeProblem when it cannot be initialised */
  async find(name: string): Promise<FlexDriver | undefined> {
    const path = this.#pathOf(name);
    const version = await this.#versionOf(path);
    if (version === undefined) {
      this.#known.delete(name);
      return undefined;
    }
    const known = this.#known.get(name);
    if (known?.version === version) return known.driver;
    const driver = await this.#init(name, path);
    this.#known.set(name, { driver, version });
    return driver;
  }

  async #init(name: string, path: string): Promise<FlexDriver> {
    const { run } = this.#host;
    const answer = await callDriver(path, ['init'], run);
    const { attach, fsGroup } = answer?.capabilities ?? {};
    return {
      name,
      // Drivers from before there were capabilities can do both.
      attaches: attach !== false,
      fsGroup: fsGroup !== false,
      call: (...words) => callDriver(path, words, run),
    };
  }

  async #versionOf(path: string): Promise<string | undefined> {
    try {
      const found = await this.#host.run('stat', ['-L', '-c', '%d:%i:%s:%.Y', '--', path]);
      return found.toString('utf8');
    } catch {
      return undefined;
    }
  }

  /** A name without a vendor stands for a folder of the same name. */
  #pathOf(name: string): string {
    const parts = name.split('/');
    const driver = parts[parts.length - 1] ?? '';
    if (parts.length > 2 || parts.some((part) => part === '' || part === '.' || part === '..')) {
      throw new VolumeProblem(`"${name}" is no name of a volume plugin`);
    }
    return join(this.#directory, parts.join('~'), driver);
  }
}
