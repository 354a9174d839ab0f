import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '@keelson/core';
import { MachineError } from '../command/check-swap.ts';

/** Settings of the kernel that pods depend on: memory may be promised twice, and a machine in trouble starts anew. */
const wanted: Readonly<Record<string, string>> = {
  'vm.overcommit_memory': '1',
  'vm.panic_on_oom': '0',
  'kernel.panic': '10',
  'kernel.panic_on_oops': '1',
  'kernel.keys.root_maxkeys': '1000000',
  'kernel.keys.root_maxbytes': '25000000',
};

/**
 * Compares the kernel with what the agent wants. With `protect` a difference is an error; otherwise it is set right, and where the agent may
 * not do that the log says so. A kernel without one of the settings has nothing to set right.
 *
 * @param root directory of the settings, `/proc/sys` of the machine
 * @throws MachineError with every difference
 */
export async function keepKernelDefaults(root: string, protect: boolean, logger: Logger): Promise<void> {
  const differences: string[] = [];
  for (const [name, value] of Object.entries(wanted)) {
    const path = join(root, ...name.split('.'));
    const found = (await readFile(path, 'utf8').catch(() => undefined))?.trim();
    if (found === value) continue;
    if (protect) differences.push(`${name} is ${found ?? 'not there'}, not ${value}`);
    else if (found !== undefined) await set(path, name, found, value, logger);
  }
  if (differences.length > 0) {
    throw new MachineError(`--protect-kernel-defaults: settings of the kernel differ: ${differences.join('; ')}`);
  }
}

async function set(path: string, name: string, found: string, value: string, logger: Logger): Promise<void> {
  try {
    await writeFile(path, value);
    logger.info('a setting of the kernel was changed', { name, from: found, to: value });
  } catch (err) {
    logger.warn('a setting of the kernel could not be changed', { name, is: found, wanted: value, err });
  }
}
