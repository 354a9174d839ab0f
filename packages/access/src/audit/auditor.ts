import { type Status, statusErrors, type UserInfo } from '@keelson/core';
import type {
  Answer,
  AuditedRequest,
  Auditor,
  Body,
  ListAnswer,
  PatchBody,
  ProtobufBodyType,
  RequestAudit,
} from '@keelson/core/internal';
import type { Clock, Metrics } from '@keelson/core/runtime';
import type { AuditSink } from './audit-sink.ts';
import { type ObjectIdentity, quoted, responseStatus, userText } from './event-texts.ts';
import { Annotations, type EndedRequest, EventWriter } from './event-writer.ts';
import { type AuditDecision, type AuditLevel, type AuditPolicy, type AuditStage, holdsCredentials } from './policy.ts';
import { answerValue, parsedBody, recordedJson } from './recorded-objects.ts';

export interface AuditorOptions {
  readonly policy: AuditPolicy;
  readonly sinks: readonly AuditSink[];
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/** An auditor that assembles events a few milliseconds after their requests have ended. */
export interface BufferingAuditor extends Auditor {
  /** Adds the events of all requests that have ended to the sinks; to be called before these are closed. */
  flush(): void;
}

/** Records the requests that a policy selects: see docs/how-to/audit.md. */
export function createAuditor(options: AuditorOptions): BufferingAuditor {
  const rejected = options.metrics.counter({
    name: 'apiserver_audit_requests_rejected_total',
    help: 'Counter of apiserver requests rejected due to an error in audit logging backend.',
  });
  const writer = new EventWriter(options);
  return {
    begin(request) {
      const decision = options.policy.decide(request.attributes, request.user);
      if (decision.level === 'None') return undefined;
      const record = new RequestRecord(request, decision, writer);
      if (record.begin()) return record;
      rejected.add(1);
      throw statusErrors.internal('failed to store audit event');
    },
    flush: () => writer.flush(),
  };
}

/** Bounds on the annotations that the plugins of one request add. */
const maxAnnotations = 100;
const maxAnnotationLength = 10 * 1024;

const reading: ReadonlySet<string> = new Set(['get', 'list', 'watch', 'head']);

/** The record of one request: which events it has, and what they contain. Texts are made when an event is written. */
class RequestRecord implements RequestAudit, EndedRequest {
  readonly #request: AuditedRequest;
  readonly #decision: AuditDecision;
  readonly #writer: EventWriter;
  readonly #withheld: boolean;
  readonly #level: AuditLevel;
  /** Epoch milliseconds; undefined before the first event. */
  #receivedAt: number | undefined;
  #identity: ObjectIdentity | undefined;
  #impersonated: UserInfo | undefined;
  #annotations = Annotations.none;
  /** Keys of the annotations that plugins added. */
  #annotated: Set<string> | undefined;
  #requestObject = '';
  #responseObject = '';
  #status: Status | undefined;
  #panicked = false;
  #code = 0;
  /** Monotonic milliseconds. */
  #endedAt = 0;

  constructor(request: AuditedRequest, decision: AuditDecision, writer: EventWriter) {
    this.#request = request;
    this.#decision = decision;
    this.#writer = writer;
    this.#withheld = holdsCredentials(request.attributes);
    this.#level = this.#withheld ? 'Metadata' : decision.level;
  }

  /** False when the request must be rejected. A request without a valid user has only one event: its response. */
  begin(): boolean {
    const { user, startedAt } = this.#request;
    return user === undefined || this.#event('RequestReceived', '', startedAt);
  }

  impersonated(user: UserInfo): void {
    this.#impersonated = user;
  }

  decided({ allowed, reason = '' }: { readonly allowed: boolean; readonly reason?: string }): void {
    this.#annotations = this.#writer.decision(allowed, reason);
  }

  received(body: Body | PatchBody, type: ProtobufBodyType): void {
    if (this.#level === 'Metadata' || body.bytes.length === 0) return;
    try {
      this.#requestObject = this.#object('requestObject', parsedBody(body, type));
    } catch {
      // A body that cannot be parsed is answered with an error, which is recorded.
    }
  }

  answered(answer: Answer | ListAnswer): void {
    const { verb } = this.#request.attributes;
    if ('object' in answer && isStatus(answer.object)) {
      this.#status = answer.object;
      const { name, uid } = answer.object.details ?? {};
      this.#identity = { name, uid };
    } else if (!reading.has(verb) && !('list' in answer)) {
      const object = 'stored' in answer ? answer.stored.ownership() : (answer.object as { metadata?: ObjectIdentity });
      this.#identity = object.metadata;
    }
    if (this.#level !== 'RequestResponse' || this.#status !== undefined) return;
    this.#responseObject = this.#object('responseObject', answerValue(answer));
  }

  failed(status: Status): void {
    this.#status = status;
  }

  annotate(key: string, value: string): void {
    this.#annotated ??= new Set();
    if (this.#annotated.has(key) || this.#annotated.size >= maxAnnotations) return;
    this.#annotated.add(key);
    const text = value.length > maxAnnotationLength ? value.slice(0, maxAnnotationLength) : value;
    this.#annotations = this.#annotations.with(`${quoted(key)}:${JSON.stringify(text)}`);
  }

  panicked(): void {
    this.#panicked = true;
  }

  started(code: number): void {
    this.#event('ResponseStarted', responseStatus(code, undefined), this.#writer.clock.monotonic());
  }

  ended(code: number, now = this.#writer.clock.monotonic()): void {
    this.#code = code;
    this.#endedAt = now;
    this.#writer.ended(this);
  }

  addLast(): void {
    const stage = this.#panicked ? 'Panic' : this.#request.user === undefined ? 'ResponseStarted' : 'ResponseComplete';
    // Messages about an invalid object contain parts of it.
    const status = this.#withheld && this.#status !== undefined ? withoutMessage(this.#status) : this.#status;
    const details = responseStatus(this.#code, status) + this.#requestObject + this.#responseObject;
    this.#event(stage, details, this.#endedAt);
  }

  /** @param now monotonic milliseconds */
  #event(stage: AuditStage, details: string, now: number): boolean {
    if (this.#decision.omitStages.has(stage)) return true;
    const writer = this.#writer;
    const request = this.#request;
    this.#receivedAt ??= writer.epochOf(request.startedAt);
    const receivedAt = this.#receivedAt;
    const impersonated = this.#impersonated;
    return writer.add(
      writer.head(this.#level, request),
      writer.request(
        request,
        this.#identity,
        impersonated === undefined ? details : `,"impersonatedUser":${userText(impersonated)}${details}`,
      ),
      request.id,
      receivedAt,
      receivedAt + now - request.startedAt,
      this.#annotations.end(stage),
    );
  }

  /**
   * `,"name":<value>`; nothing for an object that is too large. @param value undefined when it is known to be too large
   */
  #object(name: string, value: unknown): string {
    const text = recordedJson(value, this.#decision.omitManagedFields);
    if (text !== undefined) return `,"${name}":${text}`;
    this.#annotations = this.#annotations.with('"audit.k8s.io/truncated":"true"');
    return '';
  }
}

function withoutMessage({ message: _message, details: _details, ...status }: Status): Status {
  return status;
}

function isStatus(object: { readonly kind?: string }): object is Status {
  return object.kind === 'Status';
}
