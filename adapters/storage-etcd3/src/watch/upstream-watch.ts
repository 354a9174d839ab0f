import { isStorageError, StorageError, StorageErrorCode } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { Revision } from '@keelson/core/storage-adapter';
import type { Cluster, Lineage } from '../net/cluster.ts';
import type { Endpoint } from '../net/endpoint.ts';
import { translateEtcdError, verdictOf } from '../net/etcd-errors.ts';
import type { EtcdMetrics } from '../net/etcd-metrics.ts';
import type { WatchTraits } from '../net/server-version.ts';
import type { KeySpace } from '../wire/key-space.ts';
import { encodeWatchCreate } from '../wire/requests.ts';
import type { WatchFrame } from '../wire/watch-response.ts';
import { type LoggedChange, loggedChange } from './logged-change.ts';
import { fillPrevious } from './previous-values.ts';
import { WatchSession } from './watch-session.ts';

/** Dependencies that the watches of one store share. */
export interface WatchEnvironment {
  readonly cluster: Cluster;
  readonly keys: KeySpace;
  readonly lineage: Lineage;
  readonly logger: Logger;
  readonly metrics: EtcdMetrics;
  readonly clock: Clock;
}

export interface UpstreamOptions {
  /** Revision after which the watch begins. */
  readonly after: Revision;
  readonly prevKv: boolean;
  /**
   * Receives whole revisions in ascending order; with them everything up to `frontier` is delivered. Without changes it
   * reports progress only.
   */
  readonly onChanges: (changes: readonly LoggedChange[], frontier: Revision) => void;
  /**
   * Called when the watch cannot continue: with `Compacted` and the compacted revision, with `EpochChanged` or
   * `Closed`, or because etcd refuses the watch. No other callback follows.
   */
  readonly onFailure: (error: StorageError) => void;
}

const firstPauseMs = 20;
const longestPauseMs = 1000;

/**
 * A watch on everything under the prefix of the store, which continues when a stream breaks. It resumes after the last
 * revision that was delivered, by a change or by reliable progress of the server; changes at or before that revision
 * are dropped. Answers in fragments are delivered revision by revision, so that no revision is split and no answer is
 * collected completely.
 */
export class UpstreamWatch {
  readonly #environment: WatchEnvironment;
  readonly #options: UpstreamOptions;
  #position: Revision;
  #ended = false;
  #paused = false;
  #session: WatchSession | undefined;
  /** Changes of a revision that may be incomplete. */
  #incomplete: LoggedChange[] = [];
  #endPause: (() => void) | undefined;
  /**
   * Resolves when etcd has confirmed the watch for the first time, or when the watch has ended. From then on a
   * compaction that overtakes the watch is reported.
   */
  readonly established: Promise<void>;
  #establish: () => void = () => {};

  constructor(environment: WatchEnvironment, options: UpstreamOptions) {
    this.#environment = environment;
    this.#options = options;
    this.#position = options.after;
    this.established = new Promise((resolve) => {
      this.#establish = resolve;
    });
    void this.#run();
  }

  /** Revision up to which everything was delivered. */
  get position(): Revision {
    return this.#position;
  }

  /** Capabilities of the connected server; undefined while there is none. */
  get traits(): WatchTraits | undefined {
    return this.#session?.traits;
  }

  /** Stops the flow of frames until `resume`. */
  pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    this.#session?.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#session?.resume();
  }

  /** Requests progress from a server whose `traits.progress` is true. */
  requestProgress(): void {
    this.#environment.metrics.progress('request');
    this.#session?.requestProgress();
  }

  close(): void {
    this.#ended = true;
    this.#session?.close();
    this.#endPause?.();
    this.#establish();
  }

  async #run(): Promise<void> {
    const { cluster, logger } = this.#environment;
    let pauseMs = firstPauseMs;
    while (!this.#ended) {
      const before = this.#position;
      let endpoint: Endpoint | undefined;
      try {
        const opened = await cluster.watch();
        endpoint = opened.endpoint;
        await this.#follow(this.#begin(opened));
      } catch (error) {
        const fatal = fatalError(error);
        if (fatal !== undefined) {
          if (!this.#ended) this.#options.onFailure(fatal);
          this.close();
          return;
        }
        logger.debug('a watch stream of etcd broke', { err: error, revision: this.#position });
        // After a refused token the same endpoint authenticates again.
        if (endpoint !== undefined && verdictOf(error) !== 'token') cluster.leave(endpoint);
      }
      if (this.#position > before) pauseMs = firstPauseMs;
      // Not injected: jitter, which only keeps servers from connecting at the same time.
      await this.#pauseFor(pauseMs * (0.5 + Math.random() / 2));
      pauseMs = Math.min(pauseMs * 2, longestPauseMs);
    }
  }

  #begin({ call, traits }: Awaited<ReturnType<Cluster['watch']>>): WatchSession {
    const { keys, metrics, clock } = this.#environment;
    metrics.connected();
    const start = this.#position + 1;
    const request = encodeWatchCreate({ key: keys.prefix, end: keys.end, start, prevKv: this.#options.prevKv });
    return new WatchSession(call, traits, request, (frame) => this.#receive(frame), clock);
  }

  async #follow(session: WatchSession): Promise<void> {
    this.#session = session;
    if (this.#paused) session.pause();
    if (this.#ended) session.close();
    try {
      await session.ended;
    } finally {
      this.#session = undefined;
      this.#incomplete = [];
    }
  }

  #receive(frame: WatchFrame): void {
    if (this.#ended) return;
    const { header } = frame;
    this.#environment.lineage.check(header, 0);
    if (frame.canceled) throw canceled(frame);
    if (frame.created) this.#establish();
    if (frame.events.length > 0) this.#accept(frame);
    else if (!frame.created && this.#isReliableProgress(frame) && header.revision > this.#position)
      this.#deliver([], header.revision);
  }

  /**
   * Returns whether the revision of a frame without events proves progress. Unrequested progress is ordered with the
   * changes in every version of etcd, an answer to a request only in newer versions.
   */
  #isReliableProgress(frame: WatchFrame): boolean {
    return this.#incomplete.length === 0 && (!frame.toStream || this.#session?.traits.progress === true);
  }

  #accept(frame: WatchFrame): void {
    const { keys, metrics, lineage } = this.#environment;
    let changes = this.#incomplete;
    this.#incomplete = [];
    for (const event of frame.events) {
      if (event.kv.modRevision <= this.#position) continue;
      if (keys.isHidden(event.kv.key) && !event.deleted && event.kv.key.equals(keys.identity))
        lineage.recordWritten(event.kv);
      changes.push(loggedChange(keys, event, this.#options.prevKv, frame.sizeBytes));
    }
    const newest = frame.events.at(-1);
    if (newest !== undefined && !newest.deleted) {
      lineage.confirmed({ key: newest.kv.key, revision: newest.kv.modRevision, value: newest.kv.value });
    }
    metrics.events(frame.events.length);
    const last = changes.at(-1);
    if (last === undefined) return;
    if (frame.fragment) {
      const split = changes.findIndex((change) => change.revision === last.revision);
      this.#incomplete = changes.slice(split);
      changes = changes.slice(0, split);
    }
    const frontier = changes.at(-1)?.revision;
    if (frontier === undefined) return;
    if (changes.some((change) => change.prevMissing)) this.#fill(changes, frontier);
    else this.#deliver(changes, frontier);
  }

  /** Reads the previous states that the server omitted; the session is paused meanwhile. */
  #fill(changes: readonly LoggedChange[], frontier: Revision): void {
    const session = this.#session;
    if (session === undefined) return;
    session.pause();
    fillPrevious(this.#environment, changes).then(
      (filled) => {
        if (this.#ended || this.#session !== session) return;
        this.#deliver(filled, frontier);
        session.resume();
      },
      (error: unknown) => session.close(error),
    );
  }

  #deliver(changes: readonly LoggedChange[], frontier: Revision): void {
    this.#position = frontier;
    this.#options.onChanges(changes, frontier);
  }

  #pauseFor(ms: number): Promise<void> {
    if (this.#ended) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#environment.clock.after(ms, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
  }
}

function canceled(frame: WatchFrame): Error {
  const { compactRevision, cancelReason } = frame;
  if (compactRevision > 0) {
    return new StorageError(
      StorageErrorCode.Compacted,
      `the watch fell behind, history is compacted up to ${compactRevision}`,
      {
        revision: compactRevision,
      },
    );
  }
  return new CanceledError(cancelReason);
}

/** The server has cancelled the watch; the reason decides whether another attempt is made. */
class CanceledError extends Error {
  readonly refused: boolean;

  constructor(reason: string) {
    super(`etcd canceled the watch: ${reason}`);
    this.name = 'CanceledError';
    this.refused = /permission denied/.test(reason);
  }
}

/** Returns the error to report when another stream would fail too; undefined otherwise. */
function fatalError(error: unknown): StorageError | undefined {
  if (isStorageError(error)) {
    const transient = error.code === StorageErrorCode.Unavailable || error.code === StorageErrorCode.Timeout;
    return transient ? undefined : error;
  }
  if (error instanceof CanceledError) {
    return error.refused ? new StorageError(StorageErrorCode.Unavailable, error.message, { cause: error }) : undefined;
  }
  return verdictOf(error) === 'refused' ? translateEtcdError(error, 'read') : undefined;
}
