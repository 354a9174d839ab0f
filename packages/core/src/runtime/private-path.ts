import { chmodSync, mkdirSync, statSync } from 'node:fs';
import type { Logger } from './logger.ts';

const ownerDirectory = 0o700;
const ownerFile = 0o600;
const othersBits = 0o077;
const sticky = 0o1000;

/**
 * Creates a directory, with its parents, that only its owner may use. The mode of an existing one is tightened, see
 * {@link tightenMode}.
 */
export function makePrivateDirectory(path: string, logger: Logger): void {
  mkdirSync(path, { recursive: true, mode: ownerDirectory });
  tightenMode(path, logger);
}

/**
 * Removes the permissions that the group and all others have on a file or directory, and logs that. Does nothing when
 * the path does not exist, and on systems without file modes.
 *
 * @throws Error with one sentence for the operator when the mode cannot be changed, for example on a volume of
 *   another owner, and for a directory such as `/tmp`, which is meant for all users.
 */
export function tightenMode(path: string, logger: Logger): void {
  if (process.platform === 'win32') return;
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined || (stats.mode & othersBits) === 0) return;
  const wanted = stats.isDirectory() ? ownerDirectory : ownerFile;
  const before = octal(stats.mode);
  if (stats.isDirectory() && (stats.mode & sticky) !== 0) {
    throw new Error(`${path} is shared by all users (mode ${before} with the sticky bit); use a directory below it`);
  }
  let reason = 'the file system ignores modes';
  try {
    chmodSync(path, wanted);
    if ((statSync(path).mode & othersBits) === 0) {
      logger.warn('a file mode was tightened', { path, before, now: octal(wanted) });
      return;
    }
  } catch (error) {
    reason = (error as Error).message;
  }
  const remedy = stats.isDirectory()
    ? `run chmod ${octal(wanted)} as its owner, or use a directory below it`
    : 'correct its owner';
  throw new Error(
    `${path} has mode ${before}, so other users can reach it, and its mode cannot be changed (${reason}); ${remedy}`,
  );
}

function octal(mode: number): string {
  return (mode & 0o777).toString(8).padStart(4, '0');
}
