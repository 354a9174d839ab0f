import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parseDigest } from '../images/digest.ts';
import { isScratchName, scratchPath } from './scratch.ts';
import { SharedJobs, type Work } from './shared-jobs.ts';
import { Turns } from './turns.ts';

/** Blobs by digest: `FOLDER/sha256/HEX`. A file with this name is complete and verified. */
export class ContentStore {
  readonly #folder: string;
  readonly #sizes = new Map<string, number>();
  /** Number of leases by digest. */
  readonly #leases = new Map<string, number>();
  /** Downloads by digest and server. */
  readonly #arrivals = new SharedJobs<void, number>();
  /** Serializes addition and removal of a blob. */
  readonly #turns = new Turns();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Reads the folder and removes the blobs that are not in use. */
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

  /** Protects blobs from {@link collect} until `release` is called. */
  lease(digests: readonly string[]): { readonly release: () => void } {
    const change = (by: number) => {
      for (const digest of digests) this.#leases.set(digest, (this.#leases.get(digest) ?? 0) + by);
    };
    change(1);
    return { release: () => change(-1) };
  }

  /**
   * Ensures that a blob is stored. Calls `work` with the path to write it to, unless the blob exists or is being
   * downloaded from the same server. `onBytes` is called with the progress, also of a shared download. A blob may be
   * downloaded from two servers concurrently, so that a stalled server delays only its own callers.
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
      // A shared download may fail because of the credentials of another caller.
      await this.#arrivals.run(arrival, add, membership).catch(() => {});
      if (this.has(digest)) return;
    }
    await this.#arrivals.run(arrival, add, membership);
  }

  /** Removes the blobs that are neither used nor leased. */
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
