import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord } from '../../base/is-record.ts';
import { replaceFile } from '../../base/replace-file.ts';

/** One state of a config map, and which of its texts is meant. */
export interface ConfigId {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly key: string;
}

/** What is remembered from one start to the next. */
export interface ConfigState {
  /** In use; absent: the command line and its file alone. */
  readonly current?: ConfigId;
  /** The last that an agent ran with for the time of a trial. */
  readonly lastKnownGood?: ConfigId;
  /** Absent when `current` has passed its trial. */
  readonly trial?: { readonly starts: number };
  /** What is not used although it was wanted. */
  readonly refused?: { readonly of: ConfigId; readonly problem: string };
}

const idFields = ['namespace', 'name', 'uid', 'resourceVersion', 'key'] as const;

function isId(value: unknown): value is ConfigId {
  return isRecord(value) && idFields.every((field) => typeof value[field] === 'string');
}

function isState(value: unknown): value is ConfigState {
  if (!isRecord(value)) return false;
  const { current, lastKnownGood, trial, refused } = value;
  if ((current !== undefined && !isId(current)) || (lastKnownGood !== undefined && !isId(lastKnownGood))) return false;
  if (trial !== undefined && !(isRecord(trial) && typeof trial['starts'] === 'number')) return false;
  return refused === undefined || (isRecord(refused) && isId(refused['of']) && typeof refused['problem'] === 'string');
}

/** True for two names of one text. */
export function sameConfig(a: ConfigId | undefined, b: ConfigId | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && idFields.every((field) => a[field] === b[field]));
}

/** As messages name it. */
export function shownConfig({ namespace, name, uid, resourceVersion, key }: ConfigId): string {
  return `config map ${namespace}/${name}, key ${key} (uid ${uid}, resourceVersion ${resourceVersion})`;
}

/** The directory of --dynamic-config-dir: what was downloaded, and what became of it. */
export class ConfigStore {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** @throws when there is a state that cannot be read */
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
    if (!isState(value)) throw new Error(`${path} is not a state of configurations`);
    return value;
  }

  /** Remembers a state, and forgets the texts that it does not name. */
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

/** A name without a slash, which is never `.` or `..`. */
function fileOf({ uid, resourceVersion, key }: ConfigId): string {
  return [uid, resourceVersion, key].map(encodeURIComponent).join('_');
}
