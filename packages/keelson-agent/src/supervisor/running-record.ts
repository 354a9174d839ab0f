import { readFile, rm } from 'node:fs/promises';
import { replaceFile } from '@keelson/container-host';
import { parseJsonObject } from '@keelson/core/internal';
import { isAlive, type ProcessIdentity } from './process-identity.ts';
import type { SupervisorOptions } from './supervisor-options.ts';
import type { SupervisorPlace } from './supervisor-place.ts';

/** A supervisor that is running. */
export interface RunningSupervisor extends ProcessIdentity {
  /** The options that the supervisor recorded at its start. */
  readonly options: unknown;
}

/** Writes the record of a running supervisor. The supervisor itself calls this before it opens its runtime. */
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

/** The supervisor that the record in these files describes; undefined when it is not running. */
export async function findRunning(place: SupervisorPlace): Promise<RunningSupervisor | undefined> {
  const text = await readFile(place.record, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  const record = parse(text);
  return record !== undefined && (await isAlive(record)) ? record : undefined;
}

/** Parses the record of a supervisor; undefined when it is incomplete or has another form. */
function parse(text: string): RunningSupervisor | undefined {
  const value = parseJsonObject(text);
  if (value === undefined) return undefined;
  const { pid, startTicks, bootId, options } = value;
  // A record must not make the agent send signals to process 1 or to process groups.
  if (typeof pid !== 'number' || pid <= 1 || typeof startTicks !== 'string' || typeof bootId !== 'string')
    return undefined;
  return { pid, startTicks, bootId, options };
}
