import { RuntimeError } from '@keelson/container-runtime';
import { tryTool } from '../machine/run-tool.ts';

/**
 * Copies the files of an image to a folder that does not exist yet, for machines without overlays: with owners, hard
 * links, devices and all else that Node's own copying leaves behind. @throws `Internal`
 */
export async function copyRoot(root: string, target: string, signal?: AbortSignal): Promise<void> {
  const problem = await tryTool('cp', ['-a', '--', root, target], signal);
  if (problem !== undefined) throw new RuntimeError('Internal', `cannot copy the files of the image: ${problem}`);
}
