import { type AccessAttributes, type Status, statusErrors, type UserInfo } from '@keelson/core';
import {
  type Answer,
  type AuditedRequest,
  type Auditor,
  type Body,
  jsonText,
  type ListAnswer,
  type PatchBody,
  type ProtobufBodyType,
  parseJson,
  parseProtobufBody,
  parseYaml,
  type RequestAudit,
  servedJson,
} from '@keelson/core/internal';
import type { Clock, Counter, Labels, Logger, Metrics } from '@keelson/core/runtime';
import { type AuditDecision, type AuditPolicy, type AuditStage, holdsCredentials } from './policy.ts';

/** Stores events. An event is one line of JSON without a line break. */
export interface AuditSink {
  /** False when the event is lost and its request must not continue. */
  add(event: string): boolean;
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

export interface AuditorOptions {
  readonly policy: AuditPolicy;
  readonly sinks: readonly AuditSink[];
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/** Records the requests that a policy selects: see docs/how-to/audit.md. */
export function createAuditor(options: AuditorOptions): Auditor {
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
  };
}

/** Objects whose JSON is larger are left out, and the event is annotated. */
const maxObjectLength = 1024 * 1024;
const maxUserAgentLength = 1024;
const truncated = '...TRUNCATED';

/** Texts that many events share, and the sinks. */
class EventWriter {
  readonly clock: Clock;
  readonly #sinks: readonly AuditSink[];
  readonly #events: Counter;
  readonly #users = new WeakMap<UserInfo, string>();
  #userAgent: readonly [string | undefined, string] = [undefined, ''];
  #address: readonly [string | undefined, string] = [undefined, '[]'];
  #time: readonly [number, string] = [Number.NaN, ''];

  constructor({ clock, sinks, metrics }: AuditorOptions) {
    this.clock = clock;
    this.#sinks = sinks;
    this.#events = metrics.counter({
      name: 'apiserver_audit_event_total',
      help: 'Counter of audit events generated and sent to the audit backend.',
    });
  }

  add(event: string): boolean {
    this.#events.add(1);
    let stored = true;
    for (const sink of this.#sinks) stored = sink.add(event) && stored;
    return stored;
  }

  user(user: UserInfo): string {
    let text = this.#users.get(user);
    if (text === undefined) {
      const { name, uid, groups, extra } = user;
      text = JSON.stringify({ username: name, uid, groups, extra });
      this.#users.set(user, text);
    }
    return text;
  }

  userAgent(header: string): string {
    if (this.#userAgent[0] !== header) {
      const shown = header.length <= maxUserAgentLength ? header : header.slice(0, maxUserAgentLength) + truncated;
      this.#userAgent = [header, JSON.stringify(shown)];
    }
    return this.#userAgent[1];
  }

  /** The address of the connection last; those before it are what the client or a proxy sent. */
  sourceIPs({ headers, remoteAddress }: AuditedRequest): string {
    const forwarded = headers['x-forwarded-for'];
    const real = headers['x-real-ip'];
    if (forwarded !== undefined || real !== undefined) {
      const sent = [forwarded, real].flat().flatMap((each) => (each ?? '').split(','));
      const addresses = sent.map((each) => each.trim()).filter((each) => /^[0-9a-fA-F:.]{2,45}$/.test(each));
      if (remoteAddress !== undefined && addresses.at(-1) !== remoteAddress) addresses.push(remoteAddress);
      return JSON.stringify(addresses);
    }
    if (this.#address[0] !== remoteAddress)
      this.#address = [remoteAddress, remoteAddress === undefined ? '[]' : JSON.stringify([remoteAddress])];
    return this.#address[1];
  }

  /** A time in microseconds, as in Kubernetes. */
  time(ms: number): string {
    const second = Math.floor(ms / 1000);
    if (this.#time[0] !== second) this.#time = [second, new Date(second * 1000).toISOString().slice(0, -4)];
    const micros = Math.floor((ms - second * 1000) * 1000);
    return `"${this.#time[1]}${String(micros + 1_000_000).slice(1)}Z"`;
  }
}

interface ObjectIdentity {
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

const reading: ReadonlySet<string> = new Set(['get', 'list', 'watch', 'head']);

/** The record of one request. Its events are assembled as text, because most of their parts are equal or constant. */
class RequestRecord implements RequestAudit {
  readonly #request: AuditedRequest;
  readonly #decision: AuditDecision;
  readonly #writer: EventWriter;
  readonly #receivedAt: number;
  readonly #withheld: boolean;
  /** Parts that the events of the request share. */
  readonly #head: string;
  readonly #received: string;
  readonly #client: string;
  #objectRef: string;
  #impersonated = '';
  #annotations = '';
  #requestObject = '';
  #responseObject = '';
  #status: Status | undefined;
  #panicked = false;

  constructor(request: AuditedRequest, decision: AuditDecision, writer: EventWriter) {
    const { id, uri, attributes, user } = request;
    this.#request = request;
    this.#decision = decision;
    this.#writer = writer;
    this.#withheld = holdsCredentials(attributes);
    this.#receivedAt = writer.clock.now() - (writer.clock.monotonic() - request.startedAt);
    this.#received = writer.time(this.#receivedAt);
    // Group, resource and names are parts of the URL.
    const isPlain = plainUri.test(uri);
    this.#head =
      `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"${this.#level}","auditID":${quoted(id)},"requestURI":` +
      `${isPlain ? `"${withoutTokens(uri)}"` : quoted(withoutTokens(uri))},"verb":${quoted(attributes.verb)},` +
      `"user":${user === undefined ? '{}' : writer.user(user)}`;
    const userAgent = request.headers['user-agent'];
    this.#client =
      `,"sourceIPs":${writer.sourceIPs(request)}` +
      `${typeof userAgent === 'string' ? `,"userAgent":${writer.userAgent(userAgent)}` : ''}`;
    this.#objectRef = objectRef(attributes, undefined, isPlain);
  }

  get #level(): string {
    return this.#withheld ? 'Metadata' : this.#decision.level;
  }

  /** False when the request must be rejected. A request without a valid user has only one event: its response. */
  begin(): boolean {
    return this.#request.user === undefined || this.#event('RequestReceived', '', this.#receivedAt);
  }

  impersonated(user: UserInfo): void {
    this.#impersonated = `,"impersonatedUser":${this.#writer.user(user)}`;
  }

  decided({ allowed, reason = '' }: { readonly allowed: boolean; readonly reason?: string }): void {
    const decision = allowed ? 'allow' : 'forbid';
    const why = reason === '' ? '""' : quoted(reason);
    this.#annotations = `"authorization.k8s.io/decision":"${decision}","authorization.k8s.io/reason":${why}`;
  }

  received(body: Body | PatchBody, type: ProtobufBodyType): void {
    if (this.#level === 'Metadata' || body.bytes.length === 0) return;
    try {
      const value = parsedBody(body, type);
      this.#requestObject = this.#object('requestObject', value);
    } catch {
      // A body that cannot be parsed is answered with an error, which is recorded.
    }
  }

  answered(answer: Answer | ListAnswer): void {
    const { verb } = this.#request.attributes;
    if ('object' in answer && isStatus(answer.object)) {
      this.#status = answer.object;
      const { name, uid } = answer.object.details ?? {};
      this.#identify({ name, uid });
    } else if (!reading.has(verb) && !('list' in answer)) {
      const object = 'stored' in answer ? answer.stored.ownership() : (answer.object as { metadata?: ObjectIdentity });
      this.#identify(object.metadata);
    }
    if (this.#level !== 'RequestResponse' || this.#status !== undefined) return;
    this.#responseObject = this.#object('responseObject', answerValue(answer));
  }

  #identify(identity: ObjectIdentity | undefined): void {
    this.#objectRef = objectRef(this.#request.attributes, identity, false);
  }

  failed(status: Status): void {
    this.#status = status;
  }

  panicked(): void {
    this.#panicked = true;
  }

  started(code: number): void {
    this.#event('ResponseStarted', responseStatus(code, undefined), this.#writer.clock.now());
  }

  ended(code: number): void {
    const stage = this.#panicked ? 'Panic' : this.#request.user === undefined ? 'ResponseStarted' : 'ResponseComplete';
    // Messages about an invalid object contain parts of it.
    const status = this.#withheld && this.#status !== undefined ? withoutMessage(this.#status) : this.#status;
    this.#event(stage, responseStatus(code, status) + this.#requestObject + this.#responseObject);
  }

  #event(stage: AuditStage, details: string, at?: number): boolean {
    if (this.#decision.omitStages.has(stage)) return true;
    const { clock } = this.#writer;
    const annotations = this.#annotations === '' ? '' : `,"annotations":{${this.#annotations}}`;
    const time =
      at === this.#receivedAt
        ? this.#received
        : this.#writer.time(at ?? this.#receivedAt + clock.monotonic() - this.#request.startedAt);
    return this.#writer.add(
      `${this.#head}${this.#impersonated}${this.#client}${this.#objectRef}${details},` +
        `"requestReceivedTimestamp":${this.#received},"stageTimestamp":${time}${annotations},"stage":"${stage}"}`,
    );
  }

  /** `,"name":<value>`; nothing for an object that is too large. @param value undefined for one known to be so */
  #object(name: string, value: unknown): string {
    if (this.#decision.omitManagedFields) removeManagedFields(value);
    const text = value === undefined ? undefined : jsonText(value);
    if (text !== undefined && text.length <= maxObjectLength) return `,"${name}":${text}`;
    const separator = this.#annotations === '' ? '' : ',';
    if (!this.#annotations.includes('audit.k8s.io/truncated'))
      this.#annotations += `${separator}"audit.k8s.io/truncated":"true"`;
    return '';
  }
}

/** @param isPlain true when no attribute contains anything that has to be escaped */
function objectRef(attributes: AccessAttributes, identity: ObjectIdentity | undefined, isPlain: boolean): string {
  const { isResourceRequest, resource, namespace, name, apiGroup, apiVersion, subresource } = attributes;
  if (!isResourceRequest) return '';
  const field = isPlain ? plainField : quotedField;
  return (
    `,"objectRef":{"resource":${isPlain ? `"${resource}"` : quoted(resource)}` +
    `${field('namespace', namespace || identity?.namespace)}${field('name', name || identity?.name)}` +
    `${field('uid', identity?.uid)}${field('apiGroup', apiGroup)}${field('apiVersion', apiVersion)}` +
    `${field('resourceVersion', identity?.resourceVersion)}${field('subresource', subresource)}}`
  );
}

function plainField(name: string, value: string | undefined): string {
  return value ? `,"${name}":"${value}"` : '';
}

function quotedField(name: string, value: string | undefined): string {
  return value ? `,"${name}":${quoted(value)}` : '';
}

/** A URL without escapes and without characters that have to be escaped in JSON. */
const plainUri = /^[\x20\x21\x23\x24\x26-\x5b\x5d-\x7e]*$/;
const plainText = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** The text in JSON. Most texts contain nothing that has to be escaped. */
function quoted(text: string): string {
  return plainText.test(text) ? `"${text}"` : JSON.stringify(text);
}

const tokenParameter = /([?&][^=&]*(?:token|password|secret)[^=&]*=)[^&]*/gi;

/** A URL without the values of query parameters that contain credentials. Only requests to proxies have such ones. */
function withoutTokens(uri: string): string {
  return uri.includes('?') ? uri.replace(tokenParameter, '$1REDACTED') : uri;
}

function withoutMessage({ message: _message, details: _details, ...status }: Status): Status {
  return status;
}

/** `,"responseStatus":{...}`; code 0 stands for no response. */
function responseStatus(code: number, status: Status | undefined): string {
  if (status === undefined) return `,"responseStatus":{"metadata":{}${code === 0 ? '' : `,"code":${code}`}}`;
  const { metadata, status: outcome, message, reason, details } = status;
  return `,"responseStatus":${JSON.stringify({ metadata, status: outcome, message, reason, details, code })}`;
}

function isStatus(object: { readonly kind?: string }): object is Status {
  return object.kind === 'Status';
}

function parsedBody(body: Body | PatchBody, type: ProtobufBodyType): unknown {
  if ('type' in body) return parseJson(body.bytes).value;
  if (body.format === 'protobuf') return parseProtobufBody(body.bytes, type);
  return (body.format === 'yaml' ? parseYaml(body.bytes) : parseJson(body.bytes)).value;
}

/** A private copy of the content of an answer; undefined when it is too large to be recorded. */
function answerValue(answer: Answer | ListAnswer): unknown {
  if ('object' in answer) return parseJson(Buffer.from(jsonText(answer.object))).value;
  const form = servedJson(answer.kind);
  if ('stored' in answer) return parseJson(answer.stored.encoded(form)).value;
  const { kind, list } = answer;
  const items: unknown[] = [];
  let length = 0;
  for (const object of list.objects()) {
    length += object.byteLength;
    if (length > maxObjectLength) return undefined;
    items.push(parseJson(object.encoded(form)).value);
  }
  return {
    kind: `${kind.kind}List`,
    apiVersion: kind.apiVersion,
    metadata: { resourceVersion: String(list.revision) },
    items,
  };
}

function removeManagedFields(value: unknown): void {
  const { metadata, items } = (value ?? {}) as { metadata?: Record<'managedFields', unknown>; items?: unknown[] };
  if (typeof metadata === 'object' && metadata !== null) Reflect.deleteProperty(metadata, 'managedFields');
  if (Array.isArray(items)) for (const item of items) removeManagedFields(item);
}
