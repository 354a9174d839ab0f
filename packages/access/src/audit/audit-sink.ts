import type { Counter, Labels, Logger, Metrics } from '@keelson/core/runtime';

/** One line of JSON in UTF-8 without a line break. */
export interface AuditEvent {
  readonly byteLength: number;
  /** Copies the event to memory that a sink owns, from the position `at`. */
  writeTo(target: Uint8Array, at: number): void;
}

/** Stores events. */
export interface AuditSink {
  /**
   * True when {@link add} only buffers the event and always returns true. Events may then be added later and together.
   */
  readonly inBackground: boolean;
  /**
   * False when the event is lost and its request must not continue.
   *
   * @param event only valid during the call: the same object represents the next event
   */
  add(event: AuditEvent): boolean;
  /** Stores the events that are buffered, as far as that is possible within a few seconds. */
  close(): Promise<void>;
}

/** The bytes of an event in memory of their own. */
export function eventBytes(event: AuditEvent): Buffer {
  const bytes = Buffer.allocUnsafe(event.byteLength);
  event.writeTo(bytes, 0);
  return bytes;
}

/** An event that is encoded already; also several, separated by line breaks. */
export function encodedEvent(bytes: Uint8Array): AuditEvent {
  return { byteLength: bytes.length, writeTo: (target, at) => target.set(bytes, at) };
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

  /** @param cause a text where the loss has no error: many events may be lost, and errors are costly */
  add(events: number, cause: unknown): void {
    this.#errors.add(events, this.#labels);
    this.#count += events;
    this.report(cause);
  }

  report(cause: unknown): void {
    if (this.#failing) return;
    this.#failing = true;
    const err = typeof cause === 'string' ? new Error(cause) : cause;
    this.#logger.error('audit events cannot be stored', { ...this.#labels, err });
  }

  recovered(): void {
    if (!this.#failing) return;
    this.#logger.warn('audit events are stored again', { ...this.#labels, lost: this.#count });
    this.#failing = false;
    this.#count = 0;
  }
}
