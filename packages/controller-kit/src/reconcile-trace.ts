import type { RecordedWrite } from './observed-writes.ts';

/** A change that led to a run. */
export interface Trigger {
  readonly change: 'added' | 'updated' | 'deleted';
  /** Plural of the changed kind. */
  readonly resource: string;
  readonly key: string;
}

/** One run of a controller. */
export interface ReconcileRecord {
  readonly key: string;
  /** Wall time of the start, epoch milliseconds. */
  readonly startedAt: number;
  readonly durationMs: number;
  /** The changes since the previous run, at most the first eight; empty for a repeated run. */
  readonly triggers: readonly Trigger[];
  /** The last writes, at most 16. */
  readonly writes: readonly RecordedWrite[];
  /** Number of successful writes. */
  readonly writeCount: number;
  /** Message of the failure. */
  readonly error?: string;
  /** Why the key is reconciled again without a change. */
  readonly requeue?: 'failed' | 'requested' | 'hot loop';
  readonly againAfterMs?: number;
}

/** The last runs of one controller. */
export class ReconcileTrace {
  readonly #records: ReconcileRecord[] = [];
  readonly #limit: number;

  constructor(limit = 100) {
    this.#limit = limit;
  }

  add(record: ReconcileRecord): void {
    this.#records.push(record);
    if (this.#records.length > this.#limit) this.#records.shift();
  }

  /** The recorded runs, the oldest first. */
  get records(): readonly ReconcileRecord[] {
    return [...this.#records];
  }
}
