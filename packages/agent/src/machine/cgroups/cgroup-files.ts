import { constants } from 'node:fs';
import { mkdir, readdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises';

/** A cgroup could not be made, limited, joined or removed; `message` says which and why. */
export class CgroupError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CgroupError';
  }
}

/** Does something to a cgroup; a failure says what it was: errors of writes name no file. @throws CgroupError */
export async function attempt<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CgroupError) throw error;
    throw new CgroupError(`${what}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

/**
 * The little that is done to cgroup file systems, so that tests can imitate what a kernel does to them: files that
 * appear with a new group, groups that are busy. Errors are those of the system.
 */
export interface CgroupFiles {
  /** Undefined when there is no such file. */
  read(path: string): Promise<string | undefined>;
  /** Writes to a file that exists. False when there is none: the kernel was built without it. */
  write(path: string, text: string): Promise<boolean>;
  isFolder(path: string): Promise<boolean>;
  /** Names of the folders in a folder; none when it is not there. */
  folders(path: string): Promise<readonly string[]>;
  /** Makes a folder in one that exists; one that is there stays. */
  make(path: string): Promise<void>;
  /** @throws `EBUSY` while the group has processes, or groups below it; one that is not there is as good as removed */
  remove(path: string): Promise<void>;
  /** Ends a process at once. */
  kill(pid: number): void;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

/** Missing files of a kernel are no files to be made: hence no `O_CREAT`. */
const overwrite = constants.O_WRONLY | constants.O_TRUNC;

/** The files of this machine. */
export const systemCgroupFiles: CgroupFiles = {
  async read(path) {
    return readFile(path, 'utf8').catch((error: unknown) => {
      // A group that is removed meanwhile is shown for a while as a device that is gone.
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENODEV') return undefined;
      throw error;
    });
  },
  async write(path, text) {
    try {
      await writeFile(path, text, { flag: overwrite as unknown as string });
      return true;
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return false;
      throw error;
    }
  },
  async isFolder(path) {
    return stat(path).then(
      (found) => found.isDirectory(),
      () => false,
    );
  },
  async folders(path) {
    const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  },
  async make(path) {
    await mkdir(path).catch((error: unknown) => {
      if (codeOf(error) !== 'EEXIST') throw error;
    });
  },
  async remove(path) {
    await rmdir(path).catch((error: unknown) => {
      if (codeOf(error) !== 'ENOENT') throw error;
    });
  },
  kill(pid) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      // It may have ended by itself.
      if (codeOf(error) !== 'ESRCH') throw error;
    }
  },
};
