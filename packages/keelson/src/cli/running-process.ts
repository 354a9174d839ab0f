import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isAlive, type ProcessIdentity, readStat } from '@keelson/container-host';
import { writePrivateFile } from '../base/private-file.ts';

/** Name of the file in the data directory that records the process of `keelson up`. */
const file = 'up.json';

interface Recorded extends ProcessIdentity {
  readonly bootId: string;
}

const bootId = async (): Promise<string> =>
  (await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')).trim();

/** Records this process for `keelson down`. The returned function removes the record. */
export async function recordProcess(data: string): Promise<() => Promise<void>> {
  const own = readStat(process.pid);
  // On systems without /proc no nodes run, so that nothing outlives the process and no record is needed.
  if (own === undefined) return async () => {};
  const path = join(data, file);
  const recorded: Recorded = { pid: own.pid, startTicks: own.startTicks, bootId: await bootId() };
  await writePrivateFile(path, `${JSON.stringify(recorded)}\n`);
  return () => rm(path, { force: true });
}

/** The recorded process, if it still runs. A process with the same id that started at another time is another one. */
export async function runningProcess(data: string): Promise<ProcessIdentity | undefined> {
  const content = await readFile(join(data, file), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return '{}';
  });
  const { pid = 0, startTicks = 0, bootId: boot } = JSON.parse(content) as Partial<Recorded>;
  const identity = { pid, startTicks };
  return boot === (await bootId()) && isAlive(identity) ? identity : undefined;
}
