import { randomUUID } from 'node:crypto';
import type { Clock, Revision } from '@keelson/core';
import type { Client } from 'pg';
import type { Database } from './database.ts';
import { isPooled } from './inspect-connection.ts';
import type { StoreMetrics } from './metrics.ts';
import { discard } from './open-connections.ts';
import { nextPause } from './retrying.ts';
import type { Settings } from './settings.ts';

const firstPauseMs = 100;
const longestPauseMs = 10_000;
/** Behind a pooler that keeps no sessions: its configuration may change one day. */
const pooledPauseMs = 300_000;
const heartbeatMs = 5000;
const deadlineMs = 2000;
/** Every so many heartbeats the connection proves that notifications arrive. */
const beatsPerProbe = 6;
/** Writes that follow each other more closely share a notification. */
const spacingMs = 5;

/** What the listener tells its owner. */
export interface ListenerEvents {
  /** The store has reached this revision, somebody says. */
  told(revision: Revision): void;
  /** Notifications arrive from now on; what was written before must be looked for. */
  listening(): void;
}

/**
 * The connection on which servers tell each other of writes. A notification is a hint that saves asking: all of them
 * may be lost. They are sent over the shared connections, so the listening one is tested by a notification as well:
 * there are poolers that accept a LISTEN and deliver nothing. It is asked for a sign of life now and then, for it may
 * be cut without an end.
 */
export class Listener {
  readonly #settings: Settings;
  readonly #clock: Clock;
  readonly #db: Database;
  readonly #metrics: StoreMetrics;
  readonly #channel: string;
  readonly #events: ListenerEvents;
  readonly #probe = randomUUID();
  #client: Client | undefined;
  #healthy = false;
  #warned = false;
  #stopped = false;
  #pauseMs = firstPauseMs;
  #cancelTimer = () => {};
  #echo: (() => void) | undefined;
  #unsent: Revision = 0;
  #sending = false;

  constructor(settings: Settings, db: Database, metrics: StoreMetrics, channel: string, events: ListenerEvents) {
    this.#settings = settings;
    this.#clock = settings.clock;
    this.#db = db;
    this.#metrics = metrics;
    this.#channel = channel;
    this.#events = events;
  }

  /** Whether notifications can be relied on as far as anyone knows. */
  get healthy(): boolean {
    return this.#healthy;
  }

  start(): void {
    void this.#connect();
  }

  /** Tells the other servers, soon, that the store has reached `revision`. */
  notify(revision: Revision): void {
    if (revision > this.#unsent) this.#unsent = revision;
    if (!this.#sending) void this.#send();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer();
    const client = this.#client;
    this.#lose();
    if (client !== undefined) discard(client);
  }

  async #connect(): Promise<void> {
    let client: Client | undefined;
    try {
      client = await this.#db.connect(true);
      if (this.#stopped) return discard(client);
      this.#client = client;
      const mine = client;
      mine.on('notification', ({ payload }) => this.#received(payload ?? ''));
      mine.on('end', () => this.#ended(mine));
      if (isPooled(mine) && !(await this.#keepsSession(mine))) {
        this.#warn(
          'a pooler in transaction mode is in between, through which LISTEN has no effect: writes of other servers are found by polling; give a direct connection as listenUrl',
        );
        this.#lose();
        discard(mine);
        return this.#again(pooledPauseMs);
      }
      await this.#within(mine.query(`listen "${this.#channel}"`));
      await this.#tryOut(mine);
      this.#pauseMs = firstPauseMs;
      this.#beat(mine, 1);
    } catch (error) {
      this.#settings.logger.debug('cannot listen, trying again', { error: String(error) });
      if (client !== undefined) discard(client);
      if (client === undefined || this.#client !== client) this.#again();
      else this.#ended(client);
    }
  }

  #ended(client: Client): void {
    if (this.#client !== client) return;
    this.#settings.logger.info('the listening connection was lost');
    this.#lose();
    this.#again();
  }

  #lose(): void {
    this.#client = undefined;
    this.#setHealthy(false);
  }

  #again(pauseMs?: number): void {
    if (this.#stopped) return;
    this.#cancelTimer();
    if (pauseMs === undefined) this.#pauseMs = nextPause(this.#pauseMs, longestPauseMs);
    this.#cancelTimer = this.#clock.after(pauseMs ?? this.#pauseMs, () => void this.#connect());
  }

  #warn(text: string): void {
    if (!this.#warned) this.#settings.logger.warn(text);
    this.#warned = true;
  }

  #setHealthy(healthy: boolean): void {
    this.#healthy = healthy;
    this.#metrics.listening(healthy);
  }

  /** Sends a notification over another connection and waits for it. */
  async #hears(channel: string): Promise<boolean> {
    const heard = new Promise<boolean>((resolve) => {
      const cancel = this.#clock.after(deadlineMs, () => resolve(false));
      this.#echo = () => {
        cancel();
        resolve(true);
      };
    });
    await this.#within(this.#notify(channel, this.#probe));
    return heard;
  }

  /**
   * Whether the pooler that this connection leads to keeps its session. A pooler in transaction mode leaves a LISTEN
   * behind in some session of its own, so it is tried with a channel that is not used for anything else.
   */
  async #keepsSession(client: Client): Promise<boolean> {
    const channel = `keelson_${this.#probe}`;
    await this.#within(client.query(`listen "${channel}"`));
    const heard = await this.#hears(channel);
    await this.#within(client.query(`unlisten "${channel}"`));
    return heard;
  }

  async #tryOut(client: Client): Promise<void> {
    const healthy = await this.#hears(this.#channel);
    if (this.#client !== client) return;
    const before = this.#healthy;
    this.#setHealthy(healthy);
    if (healthy && !before) this.#events.listening();
    if (healthy) return;
    this.#warn(
      'LISTEN was accepted, but notifications do not arrive: a pooler seems to be in between. Writes of other servers are found by polling; give a direct connection as listenUrl',
    );
  }

  #beat(client: Client, count: number): void {
    if (this.#stopped || this.#client !== client) return;
    this.#cancelTimer = this.#clock.after(heartbeatMs, () => {
      const sign = count % beatsPerProbe === 0 ? this.#tryOut(client) : this.#within(client.query('select 1'));
      sign.then(
        () => this.#beat(client, count + 1),
        () => {
          discard(client);
          this.#ended(client);
        },
      );
    });
  }

  /** @throws when there is no answer in time. */
  async #within(answer: Promise<unknown>): Promise<void> {
    let cancel = () => {};
    const late = new Promise<never>((_, reject) => {
      cancel = this.#clock.after(deadlineMs, () => reject(new Error(`no sign of life within ${deadlineMs} ms`)));
    });
    try {
      await Promise.race([answer, late]);
    } finally {
      cancel();
      answer.catch(() => {});
    }
  }

  #received(payload: string): void {
    if (payload === this.#probe) {
      this.#echo?.();
      return;
    }
    const revision = Number(payload);
    if (!Number.isSafeInteger(revision)) return;
    this.#metrics.notificationReceived();
    this.#events.told(revision);
  }

  async #send(): Promise<void> {
    this.#sending = true;
    while (this.#unsent > 0 && !this.#stopped) {
      const revision = this.#unsent;
      this.#unsent = 0;
      try {
        await this.#notify(this.#channel, String(revision));
        this.#metrics.notificationSent();
      } catch (error) {
        this.#settings.logger.debug('a notification could not be sent', { error: String(error) });
      }
      await new Promise<void>((resolve) => {
        this.#clock.after(spacingMs, resolve);
      });
    }
    this.#unsent = 0;
    this.#sending = false;
  }

  #notify(channel: string, payload: string): Promise<unknown> {
    return this.#db.read(this.#db.statements.notify, [channel, payload], { urgent: true });
  }
}
