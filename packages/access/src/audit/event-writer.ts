import type { AccessAttributes, Status, UserInfo } from '@keelson/core';
import type { AuditedRequest } from '@keelson/core/internal';
import type { Clock, Counter, Metrics } from '@keelson/core/runtime';
import type { AuditSink } from './audit-sink.ts';
import type { AuditLevel, AuditStage } from './policy.ts';

const maxUserAgentLength = 1024;
const truncated = '...TRUNCATED';

/** Larger events have memory of their own. */
const scratchBytes = 64 * 1024;
/** Annotations that are kept encoded: one for each role and binding that allows or denies something. */
const maxAnnotations = 4096;

/** The beginning of the events of one client. */
interface Head {
  readonly level: AuditLevel;
  readonly address: string | undefined;
  readonly userAgent: string | undefined;
  readonly bytes: Buffer;
}

/**
 * Assembles events. What the events of a client, of a decision and of a stage share is kept encoded, so that an event
 * is two copies of bytes and one short text between them: most of the cost of longer texts is the garbage collector.
 */
export class EventWriter {
  readonly clock: Clock;
  readonly #sinks: readonly AuditSink[];
  readonly #events: Counter;
  readonly #scratch = Buffer.allocUnsafeSlow(scratchBytes);
  readonly #heads = new WeakMap<UserInfo, Head>();
  readonly #allowed = new Map<string, Annotations>();
  readonly #forbidden = new Map<string, Annotations>();
  #second = Number.NaN;
  #secondText = '';

  constructor(options: { readonly clock: Clock; readonly sinks: readonly AuditSink[]; readonly metrics: Metrics }) {
    this.clock = options.clock;
    this.#sinks = options.sinks;
    this.#events = options.metrics.counter({
      name: 'apiserver_audit_event_total',
      help: 'Counter of audit events generated and sent to the audit backend.',
    });
  }

  /** Adds the event that consists of these parts to all sinks. False when its request must not continue. */
  add(head: Buffer, text: string, end: Buffer): boolean {
    const event = this.#joined(head, text, end);
    this.#events.add(1);
    let stored = true;
    for (const sink of this.#sinks) stored = sink.add(event) && stored;
    return stored;
  }

  #joined(head: Buffer, text: string, end: Buffer): Buffer {
    const scratch = this.#scratch;
    if (head.length + text.length * 3 + end.length > scratchBytes) return Buffer.concat([head, Buffer.from(text), end]);
    scratch.set(head, 0);
    const at = head.length + scratch.write(text, head.length);
    scratch.set(end, at);
    return scratch.subarray(0, at + end.length);
  }

  /** The beginning of an event, up to the value of `auditID`. */
  head(level: AuditLevel, { user, headers, remoteAddress }: AuditedRequest): Buffer {
    const agent = headers['user-agent'];
    const userAgent = typeof agent === 'string' ? agent : undefined;
    const sent = [headers['x-forwarded-for'], headers['x-real-ip']];
    const isDirect = sent[0] === undefined && sent[1] === undefined;
    const known = user === undefined || !isDirect ? undefined : this.#heads.get(user);
    if (known?.level === level && known.address === remoteAddress && known.userAgent === userAgent) return known.bytes;
    const bytes = Buffer.from(
      `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"${level}","user":${user ? userText(user) : '{}'},` +
        `"sourceIPs":${JSON.stringify(sourceIPs(sent.flat(), remoteAddress))},` +
        `${userAgent === undefined ? '' : `"userAgent":${JSON.stringify(shortened(userAgent))},`}"auditID":`,
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

  /** A time in microseconds, as in Kubernetes. */
  time(ms: number): string {
    const second = Math.floor(ms / 1000);
    if (this.#second !== second) {
      this.#second = second;
      this.#secondText = new Date(second * 1000).toISOString().slice(0, -4);
    }
    const micros = Math.floor((ms - second * 1000) * 1000);
    return `"${this.#secondText}${String(micros + 1_000_000).slice(1)}Z"`;
  }
}

/** Annotations, and the ends of events with them. */
export class Annotations {
  static readonly none = new Annotations('');
  readonly text: string;
  readonly #ends = new Map<AuditStage, Buffer>();

  /** @param text the fields of the annotations */
  constructor(text: string) {
    this.text = text;
  }

  /** The last fields of an event of a stage. */
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

/** A user as JSON. */
export function userText({ name, uid, groups, extra }: UserInfo): string {
  return JSON.stringify({ username: name, uid, groups, extra });
}

function shortened(userAgent: string): string {
  return userAgent.length <= maxUserAgentLength ? userAgent : userAgent.slice(0, maxUserAgentLength) + truncated;
}

/** The address of the connection last; those before it are what the client or a proxy sent. */
function sourceIPs(sent: readonly (string | undefined)[], remoteAddress: string | undefined): string[] {
  const texts = sent.flatMap((each) => (each ?? '').split(',')).map((each) => each.trim());
  const addresses = texts.filter((each) => /^[0-9a-fA-F:.]{2,45}$/.test(each));
  if (remoteAddress !== undefined && addresses.at(-1) !== remoteAddress) addresses.push(remoteAddress);
  return addresses;
}

/** What identifies the object of a request, beside the attributes of the request. */
export interface ObjectIdentity {
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/**
 * `,"requestURI":...,"verb":...,"objectRef":{...}`, the last for a request on a resource only. Values of a URL that is
 * plain need not be checked, because group, resource and names are parts of it.
 */
export function requestText(uri: string, attributes: AccessAttributes, identity: ObjectIdentity | undefined): string {
  const { isResourceRequest, verb, resource, namespace, name, apiGroup, apiVersion, subresource } = attributes;
  const text = mayNeedEscapes.test(uri) ? quoted : bare;
  const request = `,"requestURI":${text(withoutTokens(uri))},"verb":${text(verb)}`;
  if (!isResourceRequest) return request;
  const part = (field: string, value: string | undefined) => (value ? `,"${field}":${text(value)}` : '');
  const ref =
    `${request},"objectRef":{"resource":${text(resource)}${namespace ? part('namespace', namespace) : identityPart('namespace', identity?.namespace)}` +
    `${name ? part('name', name) : identityPart('name', identity?.name)}` +
    `${part('apiGroup', apiGroup)}${part('apiVersion', apiVersion)}${part('subresource', subresource)}`;
  if (identity === undefined) return `${ref}}`;
  const { uid, resourceVersion } = identity;
  return `${ref}${identityPart('uid', uid)}${identityPart('resourceVersion', resourceVersion)}}`;
}

function identityPart(field: string, value: string | undefined): string {
  return value ? `,"${field}":${quoted(value)}` : '';
}

/** `,"responseStatus":{...}`; code 0 stands for no response. */
export function responseStatus(code: number, status: Status | undefined): string {
  if (status === undefined) return code === 200 ? okStatus : plainStatus(code);
  const { metadata, status: outcome, message, reason, details } = status;
  return `,"responseStatus":${JSON.stringify({ metadata, status: outcome, message, reason, details, code })}`;
}

const plainStatus = (code: number) => `,"responseStatus":{"metadata":{}${code === 0 ? '' : `,"code":${code}`}}`;
const okStatus = plainStatus(200);

/** Includes the escapes of URLs. */
const mayNeedEscapes = /[^\x20\x21\x23\x24\x26-\x5b\x5d-\x7e]/;
const mustBeEscaped = /[^\x20\x21\x23-\x5b\x5d-\x7e]/;

/** The text in JSON. Most texts contain nothing that has to be escaped. */
export function quoted(text: string): string {
  return mustBeEscaped.test(text) ? JSON.stringify(text) : `"${text}"`;
}

function bare(text: string): string {
  return `"${text}"`;
}

const tokenParameter = /([?&][^=&]*(?:token|password|secret)[^=&]*=)[^&]*/gi;

/** A URL without the values of query parameters that contain credentials. Only requests to proxies have such ones. */
function withoutTokens(uri: string): string {
  return uri.includes('?') ? uri.replace(tokenParameter, '$1REDACTED') : uri;
}
