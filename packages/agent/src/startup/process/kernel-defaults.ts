import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '@keelson/core';
import { isRecord } from '../../base/is-record.ts';
import { MachineError } from '../../base/machine-error.ts';
import { replaceFile } from '../../base/replace-file.ts';

/** Settings of the kernel that pods depend on: memory may be promised twice, and a machine in trouble starts anew. */
const wanted: Readonly<Record<string, string>> = {
  'vm.overcommit_memory': '1',
  'vm.panic_on_oom': '0',
  'kernel.panic': '10',
  'kernel.panic_on_oops': '1',
  'kernel.keys.root_maxkeys': '1000000',
  'kernel.keys.root_maxbytes': '25000000',
};

export interface KernelDefaultsOptions {
  /** Directory of the settings, `/proc/sys` of the machine. */
  readonly root: string;
  /** Where the values before the agent's are kept, so that an agent that was killed leaves them to the next one. */
  readonly recordFile: string;
  /** A difference is an error, and nothing is changed. */
  readonly protect: boolean;
  readonly logger: Logger;
}

/** One setting that the agent changed. */
interface Change {
  readonly from: string;
  readonly to: string;
}

/**
 * Compares the kernel with what the agent wants, and sets what differs. Where the agent may not do that, the log says
 * so. A kernel without one of the settings has nothing to set. Returns what restores the former values when the agent
 * ends.
 *
 * @throws MachineError with every difference, under `protect`
 */
export async function keepKernelDefaults(options: KernelDefaultsOptions): Promise<() => Promise<void>> {
  const { root, recordFile, protect, logger } = options;
  const found = new Map<string, string | undefined>();
  for (const name of Object.keys(wanted)) found.set(name, await settingOf(root, name));
  if (protect) {
    refuseDifferences(found);
    return async () => {};
  }
  const boot = await settingOf(root, 'kernel.random.boot_id');
  const changes = await readRecord(recordFile, boot, logger);
  const planned = new Map(changes);
  for (const [name, value] of found) {
    const to = wanted[name] ?? '';
    if (value !== undefined && value !== to) planned.set(name, { from: value, to });
  }
  // First, so that no change is without its record.
  if (planned.size > changes.size) await writeRecord(recordFile, boot, planned);
  for (const [name, { from, to }] of planned) {
    if (found.get(name) === to || (await set(root, name, from, to, logger))) changes.set(name, { from, to });
  }
  if (changes.size < planned.size) await writeRecord(recordFile, boot, changes);
  return () => restore(options, changes);
}

function refuseDifferences(found: ReadonlyMap<string, string | undefined>): void {
  const differences = [...found]
    .filter(([name, value]) => value !== wanted[name])
    .map(([name, value]) => `${name} is ${value ?? 'not there'}, not ${wanted[name]}`);
  if (differences.length > 0) {
    throw new MachineError(`--protect-kernel-defaults: settings of the kernel differ: ${differences.join('; ')}`);
  }
}

/** What was changed by somebody else since then is left as it is. */
async function restore(
  { root, recordFile, logger }: KernelDefaultsOptions,
  changes: ReadonlyMap<string, Change>,
): Promise<void> {
  for (const [name, { from, to }] of changes) {
    const is = await settingOf(root, name);
    if (is === to) await set(root, name, to, from, logger);
    else logger.info('a setting of the kernel was changed since, and is not restored', { name, is, before: from });
  }
  await rm(recordFile, { force: true });
}

async function set(root: string, name: string, from: string, to: string, logger: Logger): Promise<boolean> {
  try {
    await writeFile(pathOf(root, name), to);
    logger.info('a setting of the kernel was changed', { name, from, to });
    return true;
  } catch (err) {
    logger.warn('a setting of the kernel could not be changed', { name, is: from, wanted: to, err });
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

/** Changes of an agent that did not restore them. A start of the machine has undone them. */
async function readRecord(path: string, boot: string | undefined, logger: Logger): Promise<Map<string, Change>> {
  const changes = new Map<string, Change>();
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) return changes;
  try {
    const record: unknown = JSON.parse(text);
    if (!isRecord(record) || record['boot'] !== boot || !isRecord(record['changes'])) return changes;
    for (const [name, change] of Object.entries(record['changes'])) {
      if (wanted[name] === undefined || !isRecord(change)) continue;
      const { from, to } = change;
      if (typeof from === 'string' && typeof to === 'string') changes.set(name, { from, to });
    }
  } catch (err) {
    logger.warn('the record of changed kernel settings is damaged, former values are unknown', { path, err });
  }
  return changes;
}
