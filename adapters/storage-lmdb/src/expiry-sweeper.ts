import type { Clock, Logger } from '@keelson/core/runtime';
import type { Key, Revision, WriteResult } from '@keelson/core/storage-adapter';
import type { Environment } from './environment.ts';
import { expiryKey, readExpiryKey } from './records.ts';

/**
 * Longest delay of the timer. Timers follow monotonic time, so that a step of the wall clock takes effect after this
 * time at the latest.
 */
const maxWaitMs = 30_000;
const retryMs = 1000;
const stepKeys = 256;

/** Deletes expired keys through the ordinary write path. Expiry follows the wall clock; no key is deleted early. */
export class ExpirySweeper {
  readonly #env: Environment;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #expire: (key: Key, revision: Revision) => Promise<WriteResult>;
  #armed: { readonly at: number; readonly cancel: () => void } | undefined;
  #sweeping: Promise<void> | undefined;
  #stopped = false;

  constructor(
    env: Environment,
    clock: Clock,
    logger: Logger,
    expire: (key: Key, revision: Revision) => Promise<WriteResult>,
    readOnly: boolean,
  ) {
    this.#env = env;
    this.#clock = clock;
    this.#logger = logger;
    this.#expire = expire;
    this.#stopped = readOnly;
    this.#armForFirst();
  }

  /** Reports that a key with this expiry time was put. */
  note(expiresAt: number): void {
    if (this.#armed === undefined || expiresAt < this.#armed.at) this.#arm(expiresAt);
  }

  async settled(): Promise<void> {
    while (this.#sweeping !== undefined) await this.#sweeping;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#armed?.cancel();
    this.#armed = undefined;
    await this.settled();
  }

  #armForFirst(): void {
    for (const key of this.#env.ttl.getKeys({ limit: 1 })) this.note(readExpiryKey(key).expiresAt);
  }

  #arm(at: number, atLeastMs = 0): void {
    if (this.#stopped) return;
    this.#armed?.cancel();
    const wait = Math.max(Math.min(at - this.#clock.now(), maxWaitMs), atLeastMs);
    this.#armed = { at, cancel: this.#clock.after(Math.max(wait, 0), () => this.#due()) };
  }

  #due(): void {
    this.#armed = undefined;
    this.#sweeping ??= this.#sweep()
      .then(
        () => this.#armForFirst(),
        (err: unknown) => {
          this.#logger.warn('expired keys cannot be removed now', { err });
          this.#arm(this.#clock.now(), retryMs);
        },
      )
      .finally(() => {
        this.#sweeping = undefined;
      });
  }

  async #sweep(): Promise<void> {
    for (;;) {
      const due: { key: Key; expiresAt: number; revision: Revision }[] = [];
      const end = expiryKey(this.#clock.now() + 1, 0);
      for (const { key, value } of this.#env.ttl.getRange({ end, limit: stepKeys })) {
        due.push({ key: value.toString(), ...readExpiryKey(key) });
      }
      if (due.length === 0 || this.#stopped) return;
      const results = await Promise.all(due.map(({ key, revision }) => this.#expire(key, revision)));
      const rejected = due.filter((_, i) => results[i]?.ok === false);
      // Another write came first, and its commit has removed the expiry record. A record that remains belongs to no
      // existing key and must be removed.
      if (rejected.length > 0) {
        await this.#env.commit(() => {
          for (const { expiresAt, revision } of rejected) void this.#env.ttl.remove(expiryKey(expiresAt, revision));
        });
      }
    }
  }
}
