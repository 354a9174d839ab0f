import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parseDigest } from '../images/digest.ts';
import { isScratchName, scratchPath } from './scratch.ts';
import { SharedJobs, type Work } from './shared-jobs.ts';
import { Turns } from './turns.ts';

/** Blobs by digest: `FOLDER/sha256/HEX`. What has that name is complete and right. */
export class ContentStore {
  readonly #folder: string;
  readonly #sizes = new Map<string, number>();
  /** How many pulls need a blob although no image has it yet. */
  readonly #leases = new Map<string, number>();
  /** By digest and place. */
  readonly #arrivals = new SharedJobs<void, number>();
  /** Arrival and removal of one blob exclude each other. */
  readonly #turns = new Turns();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Keeps the blobs in use and removes all others. */
  async load(used: ReadonlySet<string>): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    for (const name of (await readdir(this.#folder)).filter(isScratchName))
      await rm(join(this.#folder, name), { force: true });
    for (const algorithm of ['sha256', 'sha512']) {
      const folder = join(this.#folder, algorithm);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      for (const name of await readdir(folder)) {
        const path = join(folder, name);
        const digest = `${algorithm}:${name}`;
        if (used.has(digest)) this.#sizes.set(digest, (await stat(path)).size);
        else await rm(path, { force: true });
      }
    }
  }

  get usedBytes(): number {
    let sum = 0;
    for (const size of this.#sizes.values()) sum += size;
    return sum;
  }

  has(digest: string): boolean {
    return this.#sizes.has(digest);
  }

  pathOf(digest: string): string {
    const { algorithm, hex } = parseDigest(digest);
    return join(this.#folder, algorithm, hex);
  }

  /** The blobs stay until `release` is called, whether an image has them or not. */
  lease(digests: readonly string[]): { readonly release: () => void } {
    const change = (by: number) => {
      for (const digest of digests) this.#leases.set(digest, (this.#leases.get(digest) ?? 0) + by);
    };
    change(1);
    return { release: () => change(-1) };
  }

  /**
   * Has a blob written to the path that `work` is given, unless it is there or on its way from the same place.
   * `onBytes` hears of the bytes as they come, whoever fetches them. Two places may send one blob at the same time: a
   * place that stands still holds nobody but those who asked it.
   */
  async ensure(
    digest: string,
    place: string,
    work: (path: string, ...rest: Parameters<Work<void, number>>) => Promise<void>,
    { signal, onBytes }: { readonly signal: AbortSignal; readonly onBytes: (count: number) => void },
  ): Promise<void> {
    const membership = { signal, onProgress: onBytes };
    const add: Work<void, number> = (within, report) => this.#add(digest, (path) => work(path, within, report));
    const arrival = `${digest} ${place}`;
    if (this.has(digest)) return;
    if (this.#arrivals.has(arrival)) {
      // Somebody else's credentials may not be good for it, so their failure is not ours.
      await this.#arrivals.run(arrival, add, membership).catch(() => {});
      if (this.has(digest)) return;
    }
    await this.#arrivals.run(arrival, add, membership);
  }

  /** Removes what is neither used nor leased. */
  async collect(used: ReadonlySet<string>): Promise<void> {
    for (const digest of [...this.#sizes.keys()]) await this.#turns.run(digest, () => this.#removeUnused(digest, used));
    for (const [digest, count] of this.#leases) if (count === 0) this.#leases.delete(digest);
  }

  async #removeUnused(digest: string, used: ReadonlySet<string>): Promise<void> {
    if (used.has(digest) || (this.#leases.get(digest) ?? 0) > 0) return;
    this.#sizes.delete(digest);
    await rm(this.pathOf(digest), { force: true });
  }

  async #add(digest: string, write: (path: string) => Promise<void>): Promise<void> {
    const temporary = scratchPath(this.#folder);
    try {
      await write(temporary);
      const { size } = await stat(temporary);
      await this.#turns.run(digest, async () => {
        await rename(temporary, this.pathOf(digest));
        this.#sizes.set(digest, size);
      });
    } finally {
      await rm(temporary, { force: true });
    }
  }
}
