import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { monitorScript } from '../launch/monitor-script.ts';
import { readIfPresent, writeAtomically } from './atomic-file.ts';

/**
 * Where everything is:
 *
 * ```
 * boot-id            of the boot in which the processes were started
 * monitor.sh         what watches one container
 * sandboxes/ID.json  and ID.stopped once it was stopped
 * containers/ID/     record.json, start.sh, pipes, root file system
 * run/ID.KIND        monitor, pid, failed, exit, logged: written as it happens, see RunFiles
 * keeper/            socket and lock of the log keeper
 * images/            unpacked images
 * ```
 */
export class StateDirectory {
  readonly root: string;

  constructor(root: string) {
    this.root = resolve(root);
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

  /** Creates what is missing, and says whether the machine was started anew since the folder was last used. */
  async prepare(bootIdFile = '/proc/sys/kernel/random/boot_id'): Promise<{ readonly rebooted: boolean }> {
    await mkdir(this.root, { recursive: true, mode: 0o700 });
    for (const folder of [this.sandboxes, this.containers, this.run, this.keeper, this.images]) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
    }
    await writeAtomically(this.monitor, monitorScript, 0o500);
    for (const name of await readdir(this.containers)) {
      if (name.startsWith('.')) await rm(join(this.containers, name), { recursive: true, force: true });
    }
    const bootId = (await readFile(bootIdFile, 'utf8')).trim();
    const known = await readIfPresent(join(this.root, 'boot-id'));
    return { rebooted: known !== undefined && known !== bootId };
  }

  /** Confirms the boot after {@link prepare}'s answer has been acted upon. */
  async confirmBoot(bootIdFile = '/proc/sys/kernel/random/boot_id'): Promise<void> {
    await writeAtomically(join(this.root, 'boot-id'), (await readFile(bootIdFile, 'utf8')).trim());
  }
}

/** 24 hex digits: safe in file names, cgroup names and command lines. */
export function newId(): string {
  return randomBytes(12).toString('hex');
}

export function isId(text: string): boolean {
  return /^[0-9a-f]{24}$/.test(text);
}
