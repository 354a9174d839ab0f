import type { Key, Revision, WriteResult } from '@keelson/core/storage-adapter';
import type { Database } from './database.ts';
import { dropPartitions } from './partitions.ts';
import { revisionOf } from './rows.ts';
import type { Settings } from './settings.ts';

const turnMs = 10_000;
const sweepKeys = 500;
/**
 * Pause while another server, which holds the lock, deletes expired keys. Afterwards that server has finished or has
 * failed.
 */
const othersTurnMs = 1000;

/** Operations of the store that maintenance uses. */
export interface MaintenanceHost {
  /** Deletes an entry through the write path of clients, only if its revision is unchanged. */
  remove(key: Key, revision: Revision): Promise<WriteResult>;
  compacted(revision: Revision): void;
  partitionRevisions(): number;
}

/**
 * Periodic work: deletes expired keys, compacts history outside its window, and adds partitions for future revisions.
 * Every server tries; a lock in the database selects one.
 */
export class Maintenance {
  readonly #settings: Settings;
  readonly #db: Database;
  readonly #host: MaintenanceHost;
  #room: Revision = 0;
  #head: Revision = 0;
  #extending: Promise<void> | undefined;
  #timer: { readonly at: number; readonly cancel: () => void } | undefined;
  #turn: Promise<void> | undefined;
  #nextTurnAt = 0;
  #stopped = false;

  constructor(settings: Settings, db: Database, host: MaintenanceHost) {
    this.#settings = settings;
    this.#db = db;
    this.#host = host;
  }

  start(): void {
    // Not injected: jitter, which spreads load over time and decides no result.
    this.#wakeIn(Math.random() * turnMs);
  }

  /** Reports that a key expires in `ms` milliseconds. */
  expiresIn(ms: number): void {
    this.#wakeIn(Math.min(Math.max(ms, 0) + 5, turnMs));
  }

  /** Reports that the store has reached this revision. */
  reached(head: Revision): void {
    this.#head = Math.max(this.#head, head);
    // At least one whole partition exists ahead of the newest revision.
    if (this.#room > 0 && this.#head + this.#host.partitionRevisions() > this.#room) {
      this.extend().catch((error: unknown) => this.#failed('adding a partition to the log', error));
    }
  }

  /** Adds partitions to the log. */
  extend(): Promise<void> {
    this.#extending ??= this.#extend().finally(() => {
      this.#extending = undefined;
    });
    return this.#extending;
  }

  /** Runs all periodic work that is due. */
  async run(): Promise<void> {
    await this.#turn?.catch(() => {});
    await this.#everything();
  }

  /** Stops, and waits a limited time for running work. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    let cancel = () => {};
    const late = new Promise<void>((resolve) => {
      cancel = this.#settings.clock.after(1000, resolve);
    });
    await Promise.race([this.#turn?.catch(() => {}), late]);
    cancel();
  }

  async dropOld(compacted: Revision): Promise<void> {
    const dropped = await dropPartitions(this.#settings, this.#db, compacted, this.#host.partitionRevisions());
    if (dropped > 0) this.#settings.logger.info('old history dropped', { partitions: dropped, compacted });
  }

  #wakeIn(ms: number): void {
    const at = this.#settings.clock.monotonic() + ms;
    if (this.#stopped || this.#turn !== undefined || (this.#timer !== undefined && this.#timer.at <= at)) return;
    this.#timer?.cancel();
    this.#timer = { at, cancel: this.#settings.clock.after(ms, () => this.#wake()) };
  }

  #wake(): void {
    this.#timer = undefined;
    let pauseMs = turnMs;
    this.#turn = this.#due()
      .then(
        (ms) => {
          pauseMs = ms;
        },
        (error: unknown) => this.#failed('maintenance', error),
      )
      .finally(() => {
        this.#turn = undefined;
        this.#wakeIn(pauseMs);
      });
  }

  async #due(): Promise<number> {
    if (this.#settings.clock.monotonic() < this.#nextTurnAt) return this.#sweep();
    return this.#everything();
  }

  async #everything(): Promise<number> {
    this.#nextTurnAt = this.#settings.clock.monotonic() + turnMs * (0.9 + Math.random() / 10);
    const { minChanges, minAgeMs } = this.#settings;
    const spacingMs = Math.max(Math.min(turnMs, minAgeMs / 30), 10) * 0.8;
    const [row] = await this.#db.read(
      this.#db.statements.trim,
      [minChanges, Math.round(minAgeMs), Math.round(spacingMs)],
      {
        urgent: true,
      },
    );
    await this.extend();
    const compacted = row?.[0];
    if (compacted !== null && compacted !== undefined) {
      this.#host.compacted(revisionOf(compacted));
      await this.dropOld(revisionOf(compacted)).catch((error: unknown) => this.#failed('dropping old history', error));
    }
    return this.#sweep();
  }

  /** Deletes expired keys. Returns the milliseconds until the next key expires. */
  async #sweep(): Promise<number> {
    const { leadExpiry, expiring } = this.#db.statements;
    const [soonest] = await this.#db.read(expiring, [1], { urgent: true });
    const wait = soonest === undefined ? turnMs : Number(soonest[2]);
    if (wait > 0) return Math.min(wait + 5, turnMs);
    return this.#db.transaction(async (runner) => {
      const [led] = await this.#db.run(runner, leadExpiry);
      if (led?.[0] !== 't') return othersTurnMs;
      for (;;) {
        const rows = await this.#db.run(runner, expiring, [sweepKeys]);
        const due = rows.filter((row) => Number(row[2]) <= 0);
        await Promise.all(due.map(([key, revision]) => this.#host.remove(key ?? '', revisionOf(revision))));
        if (due.length === sweepKeys && !this.#stopped) continue;
        const next = rows.find((row) => Number(row[2]) > 0);
        return Math.min(next === undefined ? turnMs : Number(next[2]) + 5, turnMs);
      }
    });
  }

  async #extend(): Promise<void> {
    const [row] = await this.#db.read(this.#db.statements.extend, [], { urgent: true });
    this.#room = revisionOf(row?.[0]);
  }

  #failed(what: string, error: unknown): void {
    if (!this.#stopped) this.#settings.logger.warn(`${what} failed, another attempt follows`, { error: String(error) });
  }
}
