import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '@keelson/container-host';
import { isJsonObject } from '@keelson/core/internal';

/** Identifies one version of a config map and a key in it. */
export interface ConfigId {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly key: string;
}

/** The state of dynamic configuration, which persists across starts. */
export interface ConfigState {
  /** The configuration in use; absent when the local configuration is used. */
  readonly current?: ConfigId;
  /** The last configuration that passed its trial. */
  readonly lastKnownGood?: ConfigId;
  /** Absent when `current` has passed its trial. */
  readonly trial?: { readonly starts: number };
  /** The configuration that is assigned to the node and was rejected. */
  readonly refused?: { readonly of: ConfigId; readonly problem: string };
}

const idFields = ['namespace', 'name', 'uid', 'resourceVersion', 'key'] as const;

function isId(value: unknown): value is ConfigId {
  return isJsonObject(value) && idFields.every((field) => typeof value[field] === 'string');
}

function isState(value: unknown): value is ConfigState {
  if (!isJsonObject(value)) return false;
  const { current, lastKnownGood, trial, refused } = value;
  if ((current !== undefined && !isId(current)) || (lastKnownGood !== undefined && !isId(lastKnownGood))) return false;
  if (trial !== undefined && !(isJsonObject(trial) && typeof trial['starts'] === 'number')) return false;
  return (
    refused === undefined || (isJsonObject(refused) && isId(refused['of']) && typeof refused['problem'] === 'string')
  );
}

/** True when both identify the same configuration. */
export function sameConfig(a: ConfigId | undefined, b: ConfigId | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && idFields.every((field) => a[field] === b[field]));
}

/** Formats a configuration for messages. */
export function shownConfig({ namespace, name, uid, resourceVersion, key }: ConfigId): string {
  return `config map ${namespace}/${name}, key ${key} (uid ${uid}, resourceVersion ${resourceVersion})`;
}

/** The directory of --dynamic-config-dir: the downloaded configurations and their state. */
export class ConfigStore {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /**
   * Reads the state; returns an empty one when there is none.
   *
   * @throws Error when the state cannot be read
   */
  async read(): Promise<ConfigState> {
    const path = join(this.#dir, 'state.json');
    let text: string;
    try {
      text = await readFile(path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
      throw error;
    }
    const value: unknown = JSON.parse(text);
    if (!isState(value)) throw new Error(`${path} does not contain the state of downloaded configurations`);
    return value;
  }

  /** Saves a state, and deletes the texts that it does not refer to. */
  async write(state: ConfigState): Promise<void> {
    await replaceFile(join(this.#dir, 'state.json'), `${JSON.stringify(state)}\n`);
    const wanted = new Set(
      [state.current, state.lastKnownGood].flatMap((id) => (id === undefined ? [] : [fileOf(id)])),
    );
    const folder = join(this.#dir, 'checkpoints');
    const names = await readdir(folder).catch(() => []);
    await Promise.all(names.filter((name) => !wanted.has(name)).map((name) => rm(join(folder, name), { force: true })));
  }

  async load(id: ConfigId): Promise<Buffer> {
    return readFile(join(this.#dir, 'checkpoints', fileOf(id)));
  }

  async save(id: ConfigId, text: string): Promise<void> {
    await mkdir(join(this.#dir, 'checkpoints'), { recursive: true, mode: 0o700 });
    await replaceFile(join(this.#dir, 'checkpoints', fileOf(id)), text);
  }
}

/** Returns a file name without a slash, which is never `.` or `..`. */
function fileOf({ uid, resourceVersion, key }: ConfigId): string {
  return [uid, resourceVersion, key].map(encodeURIComponent).join('_');
}
