import { readFile } from 'node:fs/promises';
import { MachineError } from '../base/machine-error.ts';

/**
 * Checks that the machine has no swap space, because swap weakens the memory limits of containers.
 *
 * @param path the table of swap spaces, `/proc/swaps`: a header line, then one line for each swap space
 * @throws MachineError when the table lists a swap space
 */
export async function checkSwap(path: string): Promise<void> {
  const table = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    // Kernels without swap have no table.
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  const spaces = table.trim().split('\n').slice(1);
  if (spaces.length > 0) {
    throw new MachineError(
      `Running with swap on is not supported; turn it off or give --fail-swap-on=false: ${spaces.join('; ')}`,
    );
  }
}
