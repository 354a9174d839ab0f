import type { UserInfo } from '@keelson/core';
import type { AuditedRequest } from '@keelson/core/internal';
import type { Clock, Counter, Metrics } from '@keelson/core/runtime';
import type { AuditEvent, AuditSink } from './audit-sink.ts';
import { type ObjectIdentity, okStatus, requestText, shortened, sourceIPs, userText } from './event-texts.ts';
import type { AuditLevel, AuditStage } from './policy.ts';

const nothing: Uint8Array = new Uint8Array();

/** Maximum number of cached annotations: one for each role and binding that allows or denies something. */
const maxAnnotations = 4096;

/**
 * Maximum number of cached texts of requests, counted separately with and without the status 200, and the longest URL
 * of a cached one.
 */
const maxRequests = 1024;
const maxRequestUrl = 512;

/** Longest time in milliseconds that the last event of a request waits to be assembled together with other events. */
export const assembleMs = 5;
const assembledTogether = 64;

/** A request that has ended and whose last event is not assembled yet. */
export interface EndedRequest {
  addLast(): void;
}

/** The beginning of the events of one client. */
interface Head {
  readonly level: AuditLevel;
  readonly address: string | undefined;
  readonly userAgent: string | undefined;
  readonly bytes: Buffer;
}

/** The text of requests to one URL. */
interface KnownRequest {
  readonly verb: string;
  /** Undefined until the URL is requested a second time: most URLs that are requested twice are requested often. */
  bytes: Uint8Array | undefined;
}

/**
 * Assembles events. The parts that the events of a client, of a URL, of a decision and of a stage share are cached in
 * encoded form, so that most events are copied from four buffers. Most of the cost of creating texts is garbage
 * collection.
 *
 * Sinks that write in the background get the last events of many requests together. Assembled after each request, the
 * code and data of events would displace those of the server from the processor's caches.
 */
export class EventWriter {
  readonly clock: Clock;
  readonly #sinks: readonly AuditSink[];
  readonly #assemblesLater: boolean;
  #ended: EndedRequest[] = [];
  #flushIsDue = false;
  /** Difference between epoch milliseconds and the monotonic clock; undefined outside of {@link flush}. */
  #epoch: number | undefined;
  readonly #events: Counter;
  readonly #event = new AssembledEvent();
  readonly #moment = new Moment();
  readonly #heads = new WeakMap<UserInfo, Head>();
  /** Cached texts of requests, by the text that follows them in the event, then by URL. */
  readonly #requests: ReadonlyMap<string, Map<string, KnownRequest>> = new Map([
    ['', new Map()],
    [okStatus, new Map()],
  ]);
  readonly #allowed = new Map<string, Annotations>();
  readonly #forbidden = new Map<string, Annotations>();

  constructor(options: { readonly clock: Clock; readonly sinks: readonly AuditSink[]; readonly metrics: Metrics }) {
    this.clock = options.clock;
    this.#sinks = options.sinks;
    this.#assemblesLater = options.sinks.every((sink) => sink.inBackground);
    this.#events = options.metrics.counter({
      name: 'apiserver_audit_event_total',
      help: 'Counter of audit events generated and sent to the audit backend.',
    });
  }

  /** Adds the last event of a request, at the latest after {@link assembleMs}. */
  ended(request: EndedRequest): void {
    this.#ended.push(request);
    if (!this.#assemblesLater || this.#ended.length >= assembledTogether) this.flush();
    else if (!this.#flushIsDue) {
      this.#flushIsDue = true;
      this.clock.after(assembleMs, () => {
        this.#flushIsDue = false;
        this.flush();
      });
    }
  }

  /** Adds the last events of all requests that have ended. */
  flush(): void {
    const ended = this.#ended;
    if (ended.length === 0) return;
    this.#ended = [];
    this.#epoch = this.#readEpoch();
    for (const request of ended) request.addLast();
    this.#epoch = undefined;
  }

  /** Epoch milliseconds of a time of the monotonic clock. */
  epochOf(monotonic: number): number {
    return monotonic + (this.#epoch ?? this.#readEpoch());
  }

  #readEpoch(): number {
    return this.clock.now() - this.clock.monotonic();
  }

  /**
   * Adds the event that consists of these parts to all sinks. False when its request must not continue.
   *
   * @param receivedAt epoch milliseconds
   * @param reachedAt epoch milliseconds
   */
  add(
    head: Uint8Array,
    request: Uint8Array,
    id: string,
    receivedAt: number,
    reachedAt: number,
    end: Uint8Array,
  ): boolean {
    const event = this.#event.of(head, request, this.#moment.encoded(id, receivedAt, reachedAt), end);
    this.#events.add(1);
    let stored = true;
    for (const sink of this.#sinks) stored = sink.add(event) && stored;
    return stored;
  }

  /** The beginning of an event: what its client, level and user determine. */
  head(level: AuditLevel, { user, headers, remoteAddress }: AuditedRequest): Buffer {
    const agent = headers['user-agent'];
    const userAgent = typeof agent === 'string' ? agent : undefined;
    const { 'x-forwarded-for': forwarded, 'x-real-ip': original } = headers;
    const isDirect = forwarded === undefined && original === undefined;
    const known = user === undefined || !isDirect ? undefined : this.#heads.get(user);
    if (known?.level === level && known.address === remoteAddress && known.userAgent === userAgent) return known.bytes;
    const bytes = Buffer.from(
      `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"${level}","user":${user ? userText(user) : '{}'},` +
        `"sourceIPs":${JSON.stringify(sourceIPs([forwarded, original].flat(), remoteAddress))}` +
        `${userAgent === undefined ? '' : `,"userAgent":${JSON.stringify(shortened(userAgent))}`}`,
    );
    if (user !== undefined && isDirect) this.#heads.set(user, { level, address: remoteAddress, userAgent, bytes });
    return bytes;
  }

  /** The annotations about a decision. Reasons name roles and bindings, so there are few of them. */
  decision(isAllowed: boolean, reason: string): Annotations {
    const kept = isAllowed ? this.#allowed : this.#forbidden;
    let found = kept.get(reason);
    if (found === undefined) {
      found = new Annotations(
        `"authorization.k8s.io/decision":"${isAllowed ? 'allow' : 'forbid'}",` +
          `"authorization.k8s.io/reason":${JSON.stringify(reason)}`,
      );
      if (kept.size >= maxAnnotations) kept.clear();
      kept.set(reason, found);
    }
    return found;
  }

  /** The part of an event about its request and response. @param details the fields after those of the request */
  request({ uri, attributes }: AuditedRequest, identity: ObjectIdentity | undefined, details: string): Uint8Array {
    const encoded = () => Buffer.from(requestText(uri, attributes, identity) + details);
    const requests = identity === undefined && uri.length <= maxRequestUrl ? this.#requests.get(details) : undefined;
    if (requests === undefined) return encoded();
    const known = requests.get(uri);
    if (known?.verb !== attributes.verb) {
      if (requests.size >= maxRequests) requests.clear();
      requests.set(uri, { verb: attributes.verb, bytes: undefined });
      return encoded();
    }
    // Memory of its own, because a small buffer would keep the larger memory that it is a part of.
    known.bytes ??= new Uint8Array(encoded());
    return known.bytes;
  }
}

/** The event that is added: its parts in order. */
class AssembledEvent implements AuditEvent {
  #head = nothing;
  #request = nothing;
  #moment = nothing;
  #end = nothing;

  of(head: Uint8Array, request: Uint8Array, moment: Uint8Array, end: Uint8Array): this {
    this.#head = head;
    this.#request = request;
    this.#moment = moment;
    this.#end = end;
    return this;
  }

  get byteLength(): number {
    return this.#head.length + this.#request.length + this.#moment.length + this.#end.length;
  }

  writeTo(target: Uint8Array, start: number): void {
    let at = start;
    target.set(this.#head, at);
    at += this.#head.length;
    target.set(this.#request, at);
    at += this.#request.length;
    target.set(this.#moment, at);
    target.set(this.#end, at + this.#moment.length);
  }
}

const idStart = ',"auditID":"';
const idLength = 36;
const receivedStart = '","requestReceivedTimestamp":"';
const reachedStart = 'Z","stageTimestamp":"';
/** Length of a timestamp up to and including the decimal point, and up to its microseconds without the `Z`. */
const secondLength = 20;
const timeLength = 26;

/** `,"auditID":...,"requestReceivedTimestamp":...,"stageTimestamp":...` in memory that is used for every event. */
class Moment {
  readonly #bytes = Buffer.from(
    `${idStart}${' '.repeat(idLength)}${receivedStart}${' '.repeat(timeLength)}${reachedStart}${' '.repeat(timeLength)}Z"`,
  );
  readonly #idEnd = idStart.length + idLength;
  readonly #received = new Timestamp(this.#bytes, this.#idEnd + receivedStart.length);
  readonly #reached = new Timestamp(this.#bytes, this.#received.end + reachedStart.length);

  /** The result is only valid until the next call. */
  encoded(id: string, receivedAt: number, reachedAt: number): Uint8Array {
    this.#received.set(receivedAt);
    this.#reached.set(reachedAt);
    if (id.length === idLength && this.#setId(id)) return this.#bytes;
    // An `Audit-Id` that the client has sent may have any length and characters. The rest of the buffer begins with the
    // closing quote of the identifier.
    const text = JSON.stringify(id).slice(1, -1);
    return Buffer.concat([Buffer.from(idStart + text), this.#bytes.subarray(this.#idEnd)]);
  }

  /** False when the identifier contains something that has to be escaped. */
  #setId(id: string): boolean {
    for (let i = 0; i < idLength; i += 1) {
      const code = id.charCodeAt(i);
      if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return false;
      this.#bytes[idStart.length + i] = code;
    }
    return true;
  }
}

/** Writes timestamps with microseconds, as in Kubernetes, to a fixed position of a buffer. */
class Timestamp {
  readonly end: number;
  readonly #bytes: Buffer;
  readonly #at: number;
  #second = Number.NaN;

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes;
    this.#at = at;
    this.end = at + timeLength;
  }

  /** @param ms epoch milliseconds */
  set(ms: number): void {
    const second = Math.floor(ms / 1000);
    if (this.#second !== second) {
      this.#second = second;
      this.#bytes.write(new Date(second * 1000).toISOString(), this.#at, secondLength);
    }
    let rest = Math.floor((ms - second * 1000) * 1000);
    for (let at = this.end - 1; at >= this.#at + secondLength; at -= 1) {
      this.#bytes[at] = 0x30 + (rest % 10);
      // `| 0` divides integers. `Math.floor` would divide in floating point, which takes several times as long.
      rest = (rest / 10) | 0;
    }
  }
}

/** Annotations of events, and the encoded ends of the events that contain them. */
export class Annotations {
  static readonly none = new Annotations('');
  readonly text: string;
  readonly #ends = new Map<AuditStage, Buffer>();

  /** @param text the fields of the annotations */
  constructor(text: string) {
    this.text = text;
  }

  /** The encoded end of an event: the annotations and the stage. */
  end(stage: AuditStage): Buffer {
    let end = this.#ends.get(stage);
    if (end === undefined) {
      const annotations = this.text === '' ? '' : `,"annotations":{${this.text}}`;
      end = Buffer.from(`${annotations},"stage":"${stage}"}`);
      this.#ends.set(stage, end);
    }
    return end;
  }

  with(field: string): Annotations {
    if (this.text.includes(field)) return this;
    return new Annotations(this.text === '' ? field : `${this.text},${field}`);
  }
}
