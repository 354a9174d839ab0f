import { join } from 'node:path';
import { type Logger, silentLogger } from '@keelson/core/runtime';
import type { Revision, StoreIdentity } from '@keelson/core/storage-adapter';
import { readPrivateFile, writePrivateFile } from '../base/private-file.ts';

/** File in the data directory that records the used stores by name and adapter. */
export const knownStoresFile = 'stores.json';

/** Another store responds under the name of a recorded one. */
export class StoreIdentityError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StoreIdentityError';
  }
}

/** Result of comparing a store with its record. `seen`: the greatest recorded revision; 0 without a record. */
export type Recognition = { readonly seen: Revision } & (
  | { readonly outcome: 'first' | 'same' }
  | { readonly outcome: 'restored'; readonly before: StoreIdentity }
  | { readonly outcome: 'accepted'; readonly before: StoreIdentity }
);

export interface KnownStoresOptions {
  /** The data directory; created when it does not exist. */
  readonly directory: string;
  /** Record another store instead of rejecting it. */
  readonly acceptNew: boolean;
  readonly logger?: Logger;
}

/** `revision`: the greatest recorded revision; absent in records of older versions. */
type KnownStore = StoreIdentity & { readonly revision?: Revision };

type Records = Record<string, KnownStore>;

/**
 * Records the identity of the store of each name, so that a swapped database or a wrong directory is detected before
 * anything is written to it. Another adapter under the same name has a record of its own, because choosing another
 * backend is a deliberate change.
 */
export class KnownStores {
  readonly #path: string;
  readonly #acceptNew: boolean;
  readonly #logger: Logger;
  /** Serializes changes of the file. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: KnownStoresOptions) {
    this.#path = join(options.directory, knownStoresFile);
    this.#acceptNew = options.acceptNew;
    this.#logger = options.logger ?? silentLogger;
  }

  /** @throws StoreIdentityError when the store is not the recorded one, unless new ones are accepted */
  recognize(name: string, adapter: string, found: StoreIdentity): Promise<Recognition> {
    const turn = this.#turn.then(() => this.#recognize(name, adapter, found));
    this.#turn = turn.catch(() => {});
    return turn;
  }

  /** Records the current revision of a recognized store. */
  note(name: string, adapter: string, revision: Revision): Promise<void> {
    const turn = this.#turn.then(() => this.#note(`${name}/${adapter}`, revision));
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #note(id: string, revision: Revision): Promise<void> {
    const records = await this.#read();
    const known = Object.hasOwn(records, id) ? records[id] : undefined;
    if (known !== undefined) await this.#write({ ...records, [id]: { ...known, revision } });
  }

  async #recognize(name: string, adapter: string, found: StoreIdentity): Promise<Recognition> {
    const records = await this.#read();
    const id = `${name}/${adapter}`;
    const before = Object.hasOwn(records, id) ? records[id] : undefined;
    const same = before?.storeId === found.storeId;
    if (before !== undefined && !same && !this.#acceptNew) throw this.#refusal(name, adapter, before, found);
    const { storeId, epoch } = found;
    // With acceptance of a new store, a revision below the recorded one is accepted as well.
    const seen = same && !this.#acceptNew ? (before.revision ?? 0) : 0;
    if (!same || before.epoch !== epoch) {
      await this.#write({ ...records, [id]: { storeId, epoch, ...(seen > 0 ? { revision: seen } : {}) } });
    }
    if (before === undefined) return { outcome: 'first', seen };
    const known = { storeId: before.storeId, epoch: before.epoch };
    if (!same) return { outcome: 'accepted', before: known, seen };
    return before.epoch === epoch ? { outcome: 'same', seen } : { outcome: 'restored', before: known, seen };
  }

  #refusal(name: string, adapter: string, before: StoreIdentity, found: StoreIdentity): StoreIdentityError {
    return new StoreIdentityError(
      `the ${adapter} store named ${name} is not the one used before: this one is ${found.storeId}, ` +
        `${this.#path} knows ${before.storeId}; ` +
        'correct --storage, or start once with --accept-new-store to use this one',
    );
  }

  async #read(): Promise<Records> {
    const text = await readPrivateFile(this.#path, this.#logger);
    if (text === undefined) return {};
    const records = recordsOf(text);
    if (records !== undefined) return records;
    throw new StoreIdentityError(`${this.#path} is damaged; remove it to accept the stores of the next start`);
  }

  async #write(records: Records): Promise<void> {
    await writePrivateFile(this.#path, `${JSON.stringify({ stores: records }, undefined, 2)}\n`, this.#logger);
  }
}

/** Undefined for an invalid record. */
function recordsOf(text: string): Records | undefined {
  try {
    const { stores } = JSON.parse(text) as { readonly stores?: Readonly<Record<string, Partial<KnownStore> | null>> };
    if (typeof stores !== 'object' || stores === null) return undefined;
    const sound = Object.values(stores).every(
      (record) =>
        typeof record?.storeId === 'string' &&
        Number.isSafeInteger(record.epoch) &&
        (record.revision === undefined || Number.isSafeInteger(record.revision)),
    );
    return sound ? (stores as Records) : undefined;
  } catch {
    return undefined;
  }
}
