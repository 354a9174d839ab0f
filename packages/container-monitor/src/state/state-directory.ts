import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { readIfPresent, removeIfPresent, writeAtomically } from '@keelson/container-host';

/**
 * The layout of the state directory:
 *
 * ```
 * boot-id            id of the boot in which the processes were started
 * monitor.sh         script that monitors one container
 * sandboxes/ID.json  record; ID.stopped exists once the sandbox was stopped
 * containers/ID/     record.json, resources.json once limits were changed, pipes, files of the adapter
 * run/ID.KIND        monitor, pid, failed, exit, logged; see RunFileKind
 * keeper/            socket and lock of the log keeper
 * images/            unpacked images
 * ```
 */
export class StateDirectory {
  readonly root: string;
  readonly #monitorScript: string;
  readonly #folders: readonly string[];

  /** `monitorScript` is the content of monitor.sh; `folders` are additional folders of the adapter. */
  constructor(root: string, monitorScript: string, folders: readonly string[] = []) {
    this.root = resolve(root);
    this.#monitorScript = monitorScript;
    this.#folders = folders.map((name) => join(this.root, name));
  }

  get sandboxes(): string {
    return join(this.root, 'sandboxes');
  }
  get containers(): string {
    return join(this.root, 'containers');
  }
  get run(): string {
    return join(this.root, 'run');
  }
  get keeper(): string {
    return join(this.root, 'keeper');
  }
  get images(): string {
    return join(this.root, 'images');
  }
  get monitor(): string {
    return join(this.root, 'monitor.sh');
  }

  container(id: string): string {
    return join(this.containers, id);
  }

  /** Creates missing folders, removes incomplete entries, and reports whether the machine was rebooted since. */
  async prepare(bootIdFile = '/proc/sys/kernel/random/boot_id'): Promise<{ readonly rebooted: boolean }> {
    await mkdir(this.root, { recursive: true, mode: 0o700 });
    for (const folder of [this.sandboxes, this.containers, this.run, this.keeper, this.images, ...this.#folders]) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
    }
    await writeAtomically(this.monitor, this.#monitorScript, 0o500);
    for (const name of await readdir(this.containers)) {
      if (name.startsWith('.')) await rm(join(this.containers, name), { recursive: true, force: true });
    }
    for (const name of await readdir(this.sandboxes)) {
      const [id = '', kind] = name.split('.');
      const orphan = kind === 'stopped' && (await readIfPresent(join(this.sandboxes, `${id}.json`))) === undefined;
      if (orphan) await removeIfPresent(join(this.sandboxes, name));
    }
    const bootId = (await readFile(bootIdFile, 'utf8')).trim();
    const known = await readIfPresent(join(this.root, 'boot-id'));
    return { rebooted: known !== undefined && known !== bootId };
  }

  /** Records the current boot, once the result of {@link prepare} has been processed. */
  async confirmBoot(bootIdFile = '/proc/sys/kernel/random/boot_id'): Promise<void> {
    await writeAtomically(join(this.root, 'boot-id'), (await readFile(bootIdFile, 'utf8')).trim());
  }
}
