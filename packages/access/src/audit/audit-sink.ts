import type { Counter, Labels, Logger, Metrics } from '@keelson/core/runtime';

/** Stores events. An event is one line of JSON in UTF-8 without a line break. */
export interface AuditSink {
  /**
   * False when the event is lost and its request must not continue.
   *
   * @param event only valid during the call: its memory is used for the next event
   */
  add(event: Buffer): boolean;
  /** Stores the events that are buffered, as far as that is possible within a few seconds. */
  close(): Promise<void>;
}

/** Counts the events that one backend lost, and reports its failure once until it works again. */
export class LostEvents {
  readonly #errors: Counter;
  readonly #labels: Labels;
  readonly #logger: Logger;
  #failing = false;
  #count = 0;

  /** @param plugin name of the backend in the metric */
  constructor(plugin: string, logger: Logger, metrics: Metrics) {
    this.#labels = { plugin };
    this.#logger = logger;
    this.#errors = metrics.counter({
      name: 'apiserver_audit_error_total',
      help: 'Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected.',
      labels: ['plugin'],
    });
  }

  get failing(): boolean {
    return this.#failing;
  }

  add(events: number, cause: unknown): void {
    this.#errors.add(events, this.#labels);
    this.#count += events;
    this.report(cause);
  }

  report(cause: unknown): void {
    if (this.#failing) return;
    this.#failing = true;
    this.#logger.error('audit events cannot be stored', { ...this.#labels, err: cause });
  }

  recovered(): void {
    if (!this.#failing) return;
    this.#logger.warn('audit events are stored again', { ...this.#labels, lost: this.#count });
    this.#failing = false;
    this.#count = 0;
  }
}
