import { randomUUID } from 'node:crypto';
import type { Clock } from '@keelson/core/runtime';
import type { Revision } from '@keelson/core/storage-adapter';
import type { Client } from 'pg';
import type { Database } from './database.ts';
import { isPooled } from './inspect-connection.ts';
import type { StoreMetrics } from './metrics.ts';
import { discard } from './open-connections.ts';
import { nextPause } from './retrying.ts';
import type { Settings } from './settings.ts';

const firstPauseMs = 100;
const longestPauseMs = 10_000;
/**
 * Pause before another attempt to listen through a pooler that keeps no sessions, since its configuration may change.
 */
const pooledPauseMs = 300_000;
const heartbeatMs = 5000;
const deadlineMs = 2000;
/** Number of heartbeats between two tests whether notifications arrive. */
const beatsPerProbe = 6;
/** Writes within this time share a notification. */
const spacingMs = 5;

export interface ListenerEvents {
  /** Called when a notification reports that the store has reached a revision. */
  notified(revision: Revision): void;
  /** Called when notifications begin to arrive; earlier writes must be read from the database. */
  listening(): void;
}

/**
 * The connection on which this server receives notifications of writes by other servers. A notification is only a hint
 * that saves a poll; any of them may be lost. Notifications are sent over the shared connections, which also tests the
 * listening connection: some poolers accept LISTEN and deliver nothing. Heartbeats detect a connection that was cut
 * without an end.
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

  /** Whether the last test has shown that notifications arrive. */
  get healthy(): boolean {
    return this.#healthy;
  }

  start(): void {
    void this.#connect();
  }

  /** Notifies the other servers, after a short delay, that the store has reached `revision`. */
  notify(revision: Revision): void {
    if (revision > this.#unsent) this.#unsent = revision;
    if (!this.#sending) void this.#send();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer();
    const client = this.#client;
    this.#disconnected();
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
          'LISTEN has no effect through a pooler in transaction mode: writes of other servers are found by polling; ' +
            'set listenUrl to a direct connection',
        );
        this.#disconnected();
        discard(mine);
        return this.#reconnectLater(pooledPauseMs);
      }
      await this.#withTimeout(mine.query(`listen "${this.#channel}"`));
      await this.#testNotifications(mine);
      this.#pauseMs = firstPauseMs;
      this.#scheduleHeartbeat(mine, 1);
    } catch (error) {
      this.#settings.logger.debug('LISTEN failed, another attempt follows', { error: String(error) });
      if (client !== undefined) discard(client);
      if (client === undefined || this.#client !== client) this.#reconnectLater();
      else this.#ended(client);
    }
  }

  #ended(client: Client): void {
    if (this.#client !== client) return;
    this.#settings.logger.info('the listening connection was lost');
    this.#disconnected();
    this.#reconnectLater();
  }

  #disconnected(): void {
    this.#client = undefined;
    this.#setHealthy(false);
  }

  #reconnectLater(pauseMs?: number): void {
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

  /** Sends a notification over another connection and returns whether it arrives in time. */
  async #receivesNotification(channel: string): Promise<boolean> {
    const received = new Promise<boolean>((resolve) => {
      const cancel = this.#clock.after(deadlineMs, () => resolve(false));
      this.#echo = () => {
        cancel();
        resolve(true);
      };
    });
    await this.#withTimeout(this.#notify(channel, this.#probe));
    return received;
  }

  /**
   * Returns whether the pooler of this connection keeps its session. A pooler in transaction mode leaves a LISTEN in
   * one of its own sessions, so that the test uses a channel that is used for nothing else.
   */
  async #keepsSession(client: Client): Promise<boolean> {
    const channel = `keelson_${this.#probe}`;
    await this.#withTimeout(client.query(`listen "${channel}"`));
    const received = await this.#receivesNotification(channel);
    await this.#withTimeout(client.query(`unlisten "${channel}"`));
    return received;
  }

  async #testNotifications(client: Client): Promise<void> {
    const healthy = await this.#receivesNotification(this.#channel);
    if (this.#client !== client) return;
    const before = this.#healthy;
    this.#setHealthy(healthy);
    if (healthy && !before) this.#events.listening();
    if (healthy) return;
    this.#warn(
      'LISTEN was accepted, but notifications do not arrive, probably because of a pooler: ' +
        'writes of other servers are found by polling; set listenUrl to a direct connection',
    );
  }

  #scheduleHeartbeat(client: Client, count: number): void {
    if (this.#stopped || this.#client !== client) return;
    this.#cancelTimer = this.#clock.after(heartbeatMs, () => {
      const alive =
        count % beatsPerProbe === 0 ? this.#testNotifications(client) : this.#withTimeout(client.query('select 1'));
      alive.then(
        () => this.#scheduleHeartbeat(client, count + 1),
        () => {
          discard(client);
          this.#ended(client);
        },
      );
    });
  }

  /** @throws Error when there is no answer in time */
  async #withTimeout(answer: Promise<unknown>): Promise<void> {
    let cancel = () => {};
    const late = new Promise<never>((_, reject) => {
      cancel = this.#clock.after(deadlineMs, () => reject(new Error(`no answer within ${deadlineMs} ms`)));
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
    this.#events.notified(revision);
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
