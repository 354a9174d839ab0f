import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { History } from './recorder.ts';
import type { HistoryRecord } from './records.ts';

/** Writes a history as JSON lines. */
export async function saveHistory(path: string, history: History): Promise<void> {
  const file = createWriteStream(path);
  for (const record of history.records) {
    if (!file.write(`${JSON.stringify(record)}\n`)) await once(file, 'drain');
  }
  if (history.truncated) file.write('{"t":"mark","at":0,"text":"truncated"}\n');
  file.end();
  await once(file, 'close');
}

/**
 * Reads a history that `saveHistory` wrote. A last line that was cut off by a crash of the recording process is left
 * out.
 */
export async function loadHistory(path: string): Promise<History> {
  const records: HistoryRecord[] = [];
  let truncated = false;
  let broken: string | undefined;
  for await (const line of createInterface({ input: createReadStream(path) })) {
    if (broken !== undefined) throw new Error(`${path}: not a record: ${broken.slice(0, 200)}`);
    try {
      const record = JSON.parse(line) as HistoryRecord;
      if (record.t === 'mark' && record.text === 'truncated') truncated = true;
      records.push(record);
    } catch {
      broken = line;
    }
  }
  return { records, truncated };
}
