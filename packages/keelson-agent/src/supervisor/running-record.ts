import { readFile, rm } from 'node:fs/promises';
import { replaceFile } from '@keelson/agent';
import { isRecord } from './is-record.ts';
import { isAlive, type ProcessIdentity } from './process-identity.ts';
import type { SupervisorOptions } from './supervisor-options.ts';
import type { SupervisorPlace } from './supervisor-place.ts';

/** A supervisor that runs. */
export interface RunningSupervisor extends ProcessIdentity {
  /** What it was started with, as it was written down then. */
  readonly options: unknown;
}

/** Written by the supervisor itself, before it does anything else. */
export async function writeRecord(
  place: SupervisorPlace,
  identity: ProcessIdentity,
  options: SupervisorOptions,
): Promise<void> {
  await replaceFile(place.record, `${JSON.stringify({ ...identity, options }, undefined, 2)}\n`);
  await replaceFile(place.pid, `${identity.pid}\n`);
}

export async function removeRecord(place: SupervisorPlace): Promise<void> {
  await rm(place.pid, { force: true });
  await rm(place.record, { force: true });
}

/** The supervisor of this place, if it is alive. */
export async function findRunning(place: SupervisorPlace): Promise<RunningSupervisor | undefined> {
  const text = await readFile(place.record, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  const record = parse(text);
  return record !== undefined && (await isAlive(record)) ? record : undefined;
}

/** What was not written to its end, or by nobody who should, names no process. */
function parse(text: string): RunningSupervisor | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(value)) return undefined;
  const { pid, startTicks, bootId, options } = value;
  // No process is of number 1 or below that could be ended.
  if (typeof pid !== 'number' || pid <= 1 || typeof startTicks !== 'string' || typeof bootId !== 'string')
    return undefined;
  return { pid, startTicks, bootId, options };
}
