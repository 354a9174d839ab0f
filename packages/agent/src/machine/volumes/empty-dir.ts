import { quantityValue } from '@keelson/core';
import type { coreV1 } from '@keelson/kinds';
import type { HostFiles } from '../host/host-files.ts';
import type { Mounter } from './mounter.ts';
import { VolumeProblem } from './volume-problem.ts';

/**
 * Makes the directory of an emptyDir, on disk or in memory. What is there already is left as it is.
 * @throws VolumeProblem
 */
export async function provideEmptyDir(
  directory: string,
  { medium, sizeLimit }: coreV1.EmptyDirVolumeSource,
  group: number | undefined,
  files: HostFiles,
  mounter: Mounter,
): Promise<void> {
  if (medium && medium !== 'Memory') throw new VolumeProblem(`medium ${medium} is not supported by this agent`);
  const made = await files.makeDirectory(directory, 0o755);
  let fresh = made;
  if (medium === 'Memory' && !(await mounter.isMounted(directory))) {
    const limit = sizeLimit === undefined ? [] : [`size=${quantityValue(sizeLimit)}`];
    await mounter.mount({ type: 'tmpfs', source: 'tmpfs', target: directory, options: ['mode=0777', ...limit] });
    fresh = true;
  }
  if (!fresh) return;
  if (group !== undefined) await files.changeGroup(directory, group);
  await files.changeMode(directory, group === undefined ? 0o777 : 0o2777);
}
