import { constants } from 'node:fs';
import { mkdir, readdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises';
import { hasCode } from './files.ts';

/** A cgroup could not be created, limited, joined or removed. The message names the cgroup and the cause. */
export class CgroupError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CgroupError';
  }
}

/**
 * Runs an operation on a cgroup. Errors of writes name no file, so a failure is described by `what`. @throws
 * CgroupError
 */
export async function attempt<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CgroupError) throw error;
    throw new CgroupError(`${what}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

/**
 * The operations on cgroup file systems. An interface, so that tests can imitate the kernel: files that
 * appear with a new cgroup, cgroups that are busy. Errors are those of the system.
 */
export interface CgroupFiles {
  /** Reads a file; undefined when it does not exist. */
  read(path: string): Promise<string | undefined>;
  /** Writes to an existing file. False when it does not exist, because the kernel was built without the feature. */
  write(path: string, text: string): Promise<boolean>;
  isFolder(path: string): Promise<boolean>;
  /** Lists the names of the subdirectories; empty when the directory does not exist. */
  folders(path: string): Promise<readonly string[]>;
  /** Creates a directory in an existing one; an existing directory is kept. */
  make(path: string): Promise<void>;
  /** Removes a cgroup; succeeds if it does not exist. @throws `EBUSY` while it contains processes or cgroups */
  remove(path: string): Promise<void>;
  /** Kills a process with SIGKILL. */
  kill(pid: number): void;
}

/** File open flags without `O_CREAT`: files that the kernel does not provide must not be created. */
const overwrite = constants.O_WRONLY | constants.O_TRUNC;

/** The cgroup file systems of this machine. */
export const systemCgroupFiles: CgroupFiles = {
  async read(path) {
    return readFile(path, 'utf8').catch((error: unknown) => {
      // A cgroup that is being removed returns ENODEV for a short time.
      if (hasCode(error, 'ENOENT', 'ENODEV')) return undefined;
      throw error;
    });
  },
  async write(path, text) {
    try {
      await writeFile(path, text, { flag: overwrite as unknown as string });
      return true;
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return false;
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
      if (!hasCode(error, 'EEXIST')) throw error;
    });
  },
  async remove(path) {
    await rmdir(path).catch((error: unknown) => {
      if (!hasCode(error, 'ENOENT')) throw error;
    });
  },
  kill(pid) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      // The process may have exited already.
      if (!hasCode(error, 'ESRCH')) throw error;
    }
  },
};
