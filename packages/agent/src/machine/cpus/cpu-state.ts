import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { replaceFile } from '@keelson/container-host';
import { isJsonObject, parseJsonObject } from '@keelson/core/internal';
import { MachineError } from '../../base/machine-error.ts';

/** Name of the file below the root directory. */
export const stateFileName = 'cpu_manager_state';

export type CpuPolicy = 'none' | 'static';

/** Exclusive CPUs by the UID of the pod and the name of the container; lists such as `0-2,7`. */
export type CpuEntries = Readonly<Record<string, Readonly<Record<string, string>>>>;

export interface CpuState {
  readonly policyName: string;
  /** The shared CPUs. */
  readonly defaultCpuSet: string;
  readonly entries: CpuEntries;
}

function checksumOf({ policyName, defaultCpuSet, entries }: CpuState): string {
  return createHash('sha256').update(JSON.stringify({ policyName, defaultCpuSet, entries })).digest('hex');
}

const advice = 'drain the node, remove the file and restart the agent';

/**
 * Reads the state file of a previous agent; undefined when there is none.
 *
 * @throws MachineError when the file is damaged, or was written with another policy
 */
export async function readCpuState(path: string, policy: CpuPolicy): Promise<CpuState | undefined> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const state = parse(text);
  if (state === undefined) throw new MachineError(`--cpu-manager-policy: ${path} is damaged; ${advice}`);
  if (state.policyName !== policy) {
    throw new MachineError(
      `--cpu-manager-policy: the policy is ${policy}, but that of ${path} is ${JSON.stringify(state.policyName)}; ` +
        advice,
    );
  }
  return state;
}

function parse(text: string): CpuState | undefined {
  const value = parseJsonObject(text);
  if (value === undefined) return undefined;
  const { policyName, defaultCpuSet, entries, checksum } = value;
  if (typeof policyName !== 'string' || typeof defaultCpuSet !== 'string' || !isJsonObject(entries)) return undefined;
  const state = { policyName, defaultCpuSet, entries: entries as CpuEntries };
  return checksumOf(state) === checksum ? state : undefined;
}

/** Writes the state file; durable when this resolves. */
export async function writeCpuState(path: string, state: CpuState): Promise<void> {
  await replaceFile(path, `${JSON.stringify({ ...state, checksum: checksumOf(state) })}\n`);
}
