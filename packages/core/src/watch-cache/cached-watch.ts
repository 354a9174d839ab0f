import type { HistoryWatch, HistoryWatchOptions } from '../storage/history-watch.ts';
import type { ObjectPredicate, WatchEvent } from '../storage/resource-storage.ts';
import { PullWatch } from '../storage/resource-watch.ts';
import type { Revision } from '../storage/store.ts';
import { Backlog, type EventSource, PastEvents } from './event-source.ts';
import type { EventWindow } from './event-window.ts';
import type { WaitingWatch, WatchView } from './watch-scopes.ts';

/** What a watch requires of the cache of its kind. */
export interface WatchHost {
  readonly window: EventWindow;
  /** All changes up to this revision have been delivered to the views. */
  readonly revision: Revision;
  /** The bookmark of the present revision, shared by all watches. */
  bookmark(): WatchEvent;
  openHistory(
    options: Pick<HistoryWatchOptions, 'prefix' | 'predicate' | 'after' | 'onProgress'>,
  ): Promise<HistoryWatch>;
  /** Called when the watch has ended. */
  forget(watch: CachedWatch, prefix: string, view: WatchView): void;
}

/**
 * A watch on the cache, which is a position in the log of its view. Before it is live it reads from an
 * {@link EventSource}: the initial state, the window, or the history of the store. A watch so slow that its position
 * has left the window reads the history again.
 */
export class CachedWatch extends PullWatch implements WaitingWatch {
  waiting = false;
  readonly #host: WatchHost;
  readonly #window: EventWindow;
  readonly #prefix: string;
  readonly #view: WatchView;
  #source: EventSource | undefined = undefined;
  #place: number;
  /** Revision of the last event read, or where the watch began. */
  #position: Revision;
  /** Live events up to this revision are skipped: the watch starts in the future, or history was ahead of the cache. */
  #startAfter: Revision = 0;
  #bookmark = false;
  /**
   * True when the events between the position of the watch and its view are no longer available. The watch then ends
   * with its error and must not deliver events of the view, because a gap would precede them.
   */
  #gap = false;

  /** Joins the view at its end. Earlier events are read from the source that {@link begin} sets. */
  constructor(host: WatchHost, prefix: string, view: WatchView, signal: AbortSignal | undefined) {
    super(signal);
    this.#host = host;
    this.#window = host.window;
    this.#prefix = prefix;
    this.#view = view;
    this.#place = view.join();
    this.#position = host.revision;
  }

  /** Starts with the changes after a revision, from the window or from the store's history. */
  async beginAfter(revision: Revision): Promise<void> {
    this.#position = revision;
    this.#startAfter = revision;
    if (revision >= this.#window.startRevision) {
      this.#readBacklog(revision);
    } else {
      const past = new PastEvents(this.#window, revision);
      this.#source = past;
      past.attach(await this.#openHistory(revision));
    }
  }

  /** Starts with the events of the source. */
  begin(source: EventSource): void {
    this.#source = source;
    this.#position = 0;
  }

  get revision(): Revision {
    if (this.#source !== undefined) return this.#source.revision;
    if (this.failed || this.#place !== this.#view.end) return this.#position;
    return Math.max(this.#position, this.#host.revision);
  }

  requestBookmark(): void {
    this.#bookmark = true;
    if (this.available()) this.wake();
  }

  protected available(): boolean {
    if (this.#source !== undefined) return this.#source.ready;
    if (this.#gap) return false;
    // A position that has left the view is continued from history, unless the watch has failed.
    if (this.#place < this.#view.end && !(this.failed && this.#place < this.#view.start)) return true;
    return this.#bookmark && !this.failed && this.#host.revision >= this.#position;
  }

  protected idle(): void {
    if (this.#source === undefined) this.#view.wait(this);
  }

  protected take(maxEvents: number): readonly WatchEvent[] {
    const source = this.#source;
    if (source === undefined) return this.#takeLive(maxEvents);
    let events: readonly WatchEvent[];
    try {
      events = source.take(maxEvents);
    } catch (error) {
      this.#endSource();
      this.#gap = true;
      this.fail(error);
      return [];
    }
    if (source instanceof Backlog && source.lost) this.#resumeFromHistory(source.revision);
    else if (source.finished) this.#leave(source);
    return events.length > 0 || this.#source !== undefined ? events : this.#takeLive(maxEvents);
  }

  protected dispose(): void {
    this.#endSource();
    this.#view.leave(this);
    this.#host.forget(this, this.#prefix, this.#view);
  }

  get #predicate(): ObjectPredicate {
    return this.#view.predicate;
  }

  #takeLive(maxEvents: number): readonly WatchEvent[] {
    if (this.#gap) return [];
    const view = this.#view;
    if (this.#place < view.start) {
      this.#resumeFromHistory(this.#position);
      return [];
    }
    let events = view.piece(this.#place, maxEvents);
    const last = events[events.length - 1];
    if (last !== undefined) {
      this.#place += events.length;
      const start = this.#startAfter;
      if ((events[0] as WatchEvent).object.revision <= start) {
        events = events.filter((event) => event.object.revision > start);
      }
      this.#position = Math.max(this.#position, last.object.revision);
    }
    if (events.length > 0 || !this.#bookmark || !this.available()) return events;
    this.#bookmark = false;
    return [this.#host.bookmark()];
  }

  /** Leaves a source that is exhausted. The next events are in the view, or, after history, in the window. */
  #leave(source: EventSource): void {
    this.#position = source.revision;
    this.#endSource();
    if (!(source instanceof PastEvents)) return;
    this.#place = this.#view.end;
    this.#startAfter = this.#position;
    this.#readBacklog(this.#position);
  }

  #readBacklog(after: Revision): void {
    const backlog = new Backlog(this.#window, after, this.#prefix, this.#predicate);
    if (!backlog.finished) this.#source = backlog;
  }

  #endSource(): void {
    this.#source?.dispose();
    this.#source = undefined;
  }

  #resumeFromHistory(after: Revision): void {
    this.#endSource();
    if (this.failed) {
      this.#gap = true;
      return;
    }
    const past = new PastEvents(this.#window, after);
    this.#source = past;
    this.#openHistory(after).then(
      (history) => {
        past.attach(history);
        this.wakeIfReadable();
      },
      // The watch fails. Until then its source delivers nothing, so no event of the view is delivered before the error.
      (error: unknown) => this.fail(error),
    );
  }

  #openHistory(after: Revision): Promise<HistoryWatch> {
    const onProgress = () => this.wakeIfReadable();
    return this.#host.openHistory({ prefix: this.#prefix, predicate: this.#predicate, after, onProgress });
  }
}
