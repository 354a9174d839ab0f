import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '@keelson/container-host';
import { isJsonObject } from '@keelson/core/internal';
import type { Logger } from '@keelson/core/runtime';
import { MachineError } from '../../base/machine-error.ts';

/** Kernel settings that pods depend on: memory overcommit is allowed, and the machine restarts after a kernel panic. */
const requiredSettings: Readonly<Record<string, string>> = {
  'vm.overcommit_memory': '1',
  'vm.panic_on_oom': '0',
  'kernel.panic': '10',
  'kernel.panic_on_oops': '1',
  'kernel.keys.root_maxkeys': '1000000',
  'kernel.keys.root_maxbytes': '25000000',
};

export interface KernelDefaultsOptions {
  /** The directory of the kernel settings, `/proc/sys` on a real machine. */
  readonly root: string;
  /** The file with the former values, so that the next agent can restore them after an agent was killed. */
  readonly recordFile: string;
  /** When true, a difference is an error and no setting is changed. */
  readonly protect: boolean;
  readonly logger: Logger;
}

/** The former and the new value of one setting that the agent changed. */
interface Change {
  readonly from: string;
  readonly to: string;
}

/**
 * Sets the kernel settings that differ from the required values. A setting that the agent is not permitted to change is
 * logged; a setting that the kernel does not have is skipped.
 *
 * @returns a function that restores the former values
 * @throws MachineError that lists every difference, when `protect` is true
 */
export async function keepKernelDefaults(options: KernelDefaultsOptions): Promise<() => Promise<void>> {
  const { root, recordFile, protect, logger } = options;
  const found = new Map<string, string | undefined>();
  for (const name of Object.keys(requiredSettings)) found.set(name, await settingOf(root, name));
  if (protect) {
    rejectDifferences(found);
    return async () => {};
  }
  const boot = await settingOf(root, 'kernel.random.boot_id');
  const changes = await readRecord(recordFile, boot, logger);
  const planned = new Map(changes);
  for (const [name, value] of found) {
    const to = requiredSettings[name] ?? '';
    if (value !== undefined && value !== to) planned.set(name, { from: value, to });
  }
  // The record is written before the changes, so that every change is recorded.
  if (planned.size > changes.size) await writeRecord(recordFile, boot, planned);
  for (const [name, { from, to }] of planned) {
    if (found.get(name) === to || (await set(root, name, from, to, logger))) changes.set(name, { from, to });
  }
  if (changes.size < planned.size) await writeRecord(recordFile, boot, changes);
  return () => restore(options, changes);
}

function rejectDifferences(found: ReadonlyMap<string, string | undefined>): void {
  const differences = [...found]
    .filter(([name, value]) => value !== requiredSettings[name])
    .map(([name, value]) => `${name} is ${value ?? 'missing'}, not ${requiredSettings[name]}`);
  if (differences.length > 0) {
    throw new MachineError(`--protect-kernel-defaults: settings of the kernel differ: ${differences.join('; ')}`);
  }
}

/** Restores the former values, except of settings that another process has changed in the meantime. */
async function restore(
  { root, recordFile, logger }: KernelDefaultsOptions,
  changes: ReadonlyMap<string, Change>,
): Promise<void> {
  for (const [name, { from, to }] of changes) {
    const current = await settingOf(root, name);
    if (current === to) await set(root, name, to, from, logger);
    else
      logger.info('a kernel setting was changed by another process and is not restored', {
        name,
        current,
        former: from,
      });
  }
  await rm(recordFile, { force: true });
}

async function set(root: string, name: string, from: string, to: string, logger: Logger): Promise<boolean> {
  try {
    await writeFile(pathOf(root, name), to);
    logger.info('a kernel setting was changed', { name, from, to });
    return true;
  } catch (err) {
    logger.warn('a kernel setting could not be changed', { name, current: from, required: to, err });
    return false;
  }
}

const pathOf = (root: string, name: string): string => join(root, ...name.split('.'));

async function settingOf(root: string, name: string): Promise<string | undefined> {
  return (await readFile(pathOf(root, name), 'utf8').catch(() => undefined))?.trim();
}

async function writeRecord(
  path: string,
  boot: string | undefined,
  changes: ReadonlyMap<string, Change>,
): Promise<void> {
  await replaceFile(path, JSON.stringify({ boot, changes: Object.fromEntries(changes) }));
}

/** Reads the changes that a former agent did not restore. Changes before the last boot of the machine are ignored. */
async function readRecord(path: string, boot: string | undefined, logger: Logger): Promise<Map<string, Change>> {
  const changes = new Map<string, Change>();
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) return changes;
  try {
    const record: unknown = JSON.parse(text);
    if (!isJsonObject(record) || record['boot'] !== boot || !isJsonObject(record['changes'])) return changes;
    for (const [name, change] of Object.entries(record['changes'])) {
      if (requiredSettings[name] === undefined || !isJsonObject(change)) continue;
      const { from, to } = change;
      if (typeof from === 'string' && typeof to === 'string') changes.set(name, { from, to });
    }
  } catch (err) {
    logger.warn('the record of changed kernel settings is damaged, former values are unknown', { path, err });
  }
  return changes;
}
