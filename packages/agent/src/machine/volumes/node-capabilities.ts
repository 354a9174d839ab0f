import { join } from 'node:path';
import type { HostFiles } from '../host/host-files.ts';
import { VolumeProblem } from './volume-problem.ts';

/** Where mount(8) looks for the helpers of file systems. */
const helperDirectories = ['/sbin', '/sbin/fs.d', '/sbin/fs', '/usr/sbin'];

/** The helper of each type of file system; what is not here needs none. */
const helpers: Readonly<Record<string, string>> = { nfs: 'mount.nfs', ceph: 'mount.ceph' };

/** Looks for what mounting needs. @throws VolumeProblem when it is not on the node */
export async function checkCapabilities(
  type: string,
  files: HostFiles,
  directories: readonly string[] = helperDirectories,
): Promise<void> {
  const helper = helpers[type];
  if (helper === undefined) return;
  for (const directory of directories) {
    if ((await files.info(join(directory, helper), 'follow'))?.type === 'file') return;
  }
  throw new VolumeProblem(
    `the node lacks ${helper}, which volumes of type ${type} need. Verify that your node machine has the required components before attempting to mount this volume type`,
  );
}
