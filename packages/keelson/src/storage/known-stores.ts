import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StoreIdentity } from '@keelson/core';
import { writePrivateFile } from '../private-file.ts';

/** File in the data directory with the stores that were used, by name and adapter. */
export const knownStoresFile = 'stores.json';

/** A different store answers under the name of one that is known. */
export class StoreIdentityError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StoreIdentityError';
  }
}

/** How a store compares with the record. */
export type Recognition =
  | { readonly outcome: 'first' | 'same' }
  | { readonly outcome: 'restored'; readonly before: StoreIdentity }
  | { readonly outcome: 'accepted'; readonly before: StoreIdentity };

export interface KnownStoresOptions {
  /** The data directory; made when it does not exist. */
  readonly directory: string;
  /** Take note of a different store instead of refusing it. */
  readonly acceptNew: boolean;
}

type Records = Record<string, StoreIdentity>;

/**
 * Remembers which store was behind each name, so that a swapped database or a wrong directory is noticed before anything is written to
 * it. Another adapter under the same name is another entry: choosing another backend is a decision, not an accident.
 */
export class KnownStores {
  readonly #path: string;
  readonly #directory: string;
  readonly #acceptNew: boolean;
  /** One change of the file at a time. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: KnownStoresOptions) {
    this.#directory = options.directory;
    this.#path = join(options.directory, knownStoresFile);
    this.#acceptNew = options.acceptNew;
  }

  /** @throws StoreIdentityError when the store is not the one that is known, unless new ones are accepted. */
  recognize(name: string, adapter: string, found: StoreIdentity): Promise<Recognition> {
    const turn = this.#turn.then(() => this.#recognize(name, adapter, found));
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #recognize(name: string, adapter: string, found: StoreIdentity): Promise<Recognition> {
    const records = await this.#read();
    const id = `${name}/${adapter}`;
    const before = Object.hasOwn(records, id) ? records[id] : undefined;
    const same = before?.storeId === found.storeId;
    if (before !== undefined && !same && !this.#acceptNew) throw this.#refusal(name, adapter, before, found);
    if (!same || before.epoch !== found.epoch)
      await this.#write({ ...records, [id]: { storeId: found.storeId, epoch: found.epoch } });
    if (before === undefined) return { outcome: 'first' };
    if (!same) return { outcome: 'accepted', before };
    return before.epoch === found.epoch ? { outcome: 'same' } : { outcome: 'restored', before };
  }

  #refusal(name: string, adapter: string, before: StoreIdentity, found: StoreIdentity): StoreIdentityError {
    return new StoreIdentityError(
      `the ${adapter} store named ${name} is not the one used before: this one is ${found.storeId}, ${this.#path} knows ${before.storeId}; ` +
        'correct --storage, or start once with --accept-new-store to go on with this one',
    );
  }

  async #read(): Promise<Records> {
    let text: string;
    try {
      text = await readFile(this.#path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
      throw error;
    }
    const records = recordsOf(text);
    if (records !== undefined) return records;
    throw new StoreIdentityError(`${this.#path} is damaged; remove it to have the stores of the next start taken as they are`);
  }

  async #write(records: Records): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await writePrivateFile(this.#path, `${JSON.stringify({ stores: records }, undefined, 2)}\n`);
  }
}

/** Undefined when the text is no record. */
function recordsOf(text: string): Records | undefined {
  try {
    const { stores } = JSON.parse(text) as { readonly stores?: Readonly<Record<string, Partial<StoreIdentity> | null>> };
    if (typeof stores !== 'object' || stores === null) return undefined;
    const sound = Object.values(stores).every(
      (record) => typeof record?.storeId === 'string' && Number.isSafeInteger(record.epoch),
    );
    return sound ? (stores as Records) : undefined;
  } catch {
    return undefined;
  }
}
