import { tryTool } from '@keelson/container-host';
import { RuntimeError } from '@keelson/container-runtime';

/**
 * Copies the files of an image to a new folder, for machines without overlay file systems. Preserves owners, hard
 * links, devices and other attributes that the copy functions of Node do not preserve.
 * @throws `Internal`
 */
export async function copyRoot(root: string, target: string, signal?: AbortSignal): Promise<void> {
  const problem = await tryTool('cp', ['-a', '--', root, target], signal);
  if (problem !== undefined) throw new RuntimeError('Internal', `cannot copy the files of the image: ${problem}`);
}
