import { readFile } from 'node:fs/promises';
import { MachineError } from '../base/machine-error.ts';

/**
 * With swap, memory limits of containers mean little. The table has a line of titles, and one for each swap space.
 *
 * @throws MachineError when there is one
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
