import { join } from 'node:path';
import { writeAtomically } from '@keelson/container-host';
import { nativePrograms } from '../native/programs.ts';
import { detachedScript, mountScript, terminalScript } from './scripts.ts';

const executableMode = 0o500;

/** Paths of the helper programs in the state directory. */
export interface Programs {
  readonly reaper: string;
  readonly holder: string;
  readonly mountScript: string;
  readonly detachedScript: string;
  readonly terminalScript: string;
}

/**
 * Writes the helper programs. Running helpers are not affected.
 *
 * @throws RuntimeError `Unsupported` for a processor architecture without helper programs
 */
export async function installPrograms(folder: string): Promise<Programs> {
  const { reaper, holder } = nativePrograms();
  const place = async (name: string, contents: string | Buffer) => {
    const path = join(folder, name);
    await writeAtomically(path, contents, executableMode);
    return path;
  };
  return {
    reaper: await place('reaper', reaper),
    holder: await place('holder', holder),
    mountScript: await place('mount.sh', mountScript),
    detachedScript: await place('detached.sh', detachedScript),
    terminalScript: await place('terminal.sh', terminalScript),
  };
}
