import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentPaths } from '../../base/agent-paths.ts';
import { isRecord } from '../../base/is-record.ts';

/** What has to be undone for one volume of one pod, written down before it is done. */
export interface FlexRecord {
  readonly uid: string;
  readonly volume: string;
  /** `vendor/driver`. */
  readonly driver: string;
  /** The name of the volume beyond this pod: what several pods use is attached once. */
  readonly sharedName: string;
  readonly attaches: boolean;
  /** The agent attached it, and so has to detach it. */
  readonly attachedHere: boolean;
}

/**
 * The records of all pods, which outlive the agent as mounts do: one file for each volume in `plugins` below the pod's
 * directory.
 */
export class FlexRecords {
  readonly #paths: AgentPaths;
  #records: Promise<Map<string, FlexRecord>> | undefined;

  constructor(paths: AgentPaths) {
    this.#paths = paths;
  }

  async all(): Promise<readonly FlexRecord[]> {
    return [...(await this.#load()).values()];
  }

  async put(record: FlexRecord): Promise<void> {
    const file = this.#fileOf(record);
    const records = await this.#load();
    await mkdir(this.#paths.podPlugins(record.uid), { recursive: true, mode: 0o750 });
    await writeFile(file, JSON.stringify(record), { mode: 0o640 });
    records.set(file, record);
  }

  async delete(record: FlexRecord): Promise<void> {
    const file = this.#fileOf(record);
    await rm(file, { force: true });
    (await this.#load()).delete(file);
  }

  #fileOf({ uid, volume }: FlexRecord): string {
    return join(this.#paths.podPlugins(uid), `${volume}.flex.json`);
  }

  #load(): Promise<Map<string, FlexRecord>> {
    this.#records ??= this.#read();
    return this.#records;
  }

  async #read(): Promise<Map<string, FlexRecord>> {
    const found = new Map<string, FlexRecord>();
    for (const uid of await readdir(this.#paths.pods()).catch(() => [])) {
      const directory = this.#paths.podPlugins(uid);
      for (const name of await readdir(directory).catch(() => [])) {
        if (!name.endsWith('.flex.json')) continue;
        const record = parseRecord(await readFile(join(directory, name), 'utf8').catch(() => ''));
        if (record !== undefined) found.set(this.#fileOf(record), record);
      }
    }
    return found;
  }
}

/** A record that was cut off was written before anything was done. */
function parseRecord(text: string): FlexRecord | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && typeof value['uid'] === 'string' ? (value as unknown as FlexRecord) : undefined;
  } catch {
    return undefined;
  }
}
