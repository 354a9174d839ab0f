import type { ProtobufBodyType } from '../codec/protobuf/protobuf-codec.ts';
import type { AccessAttributes, AccessDecision } from '../meta/authorizer.ts';
import type { UserInfo } from '../meta/request-context.ts';
import type { Status } from '../meta/status.ts';
import type { Answer, Body, ListAnswer, PatchBody } from './resource-service.ts';

/** A request at the point where its user is known. */
export interface AuditedRequest {
  /** Value of the `Audit-Id` header. */
  readonly id: string;
  /** Path and query as sent. */
  readonly uri: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly remoteAddress: string | undefined;
  /** The attributes of the request, derived from `uri` and the method. */
  readonly attributes: AccessAttributes;
  /** The authenticated user; undefined when authentication failed. */
  readonly user: UserInfo | undefined;
  /** Arrival of the request in monotonic milliseconds. */
  readonly startedAt: number;
}

/** Records what users do. Transports call it; it never changes a request. */
export interface Auditor {
  /**
   * Begins the record of a request; undefined when the policy does not record it.
   *
   * @throws StatusError 500 when the event cannot be stored and the request must not continue without it
   */
  begin(request: AuditedRequest): RequestAudit | undefined;
}

/** The record of one request. The methods are called in this order, each at most once; some do not apply. */
export interface RequestAudit {
  /** Records the user that the request impersonates. */
  impersonated(user: UserInfo): void;
  decided(decision: Pick<AccessDecision, 'allowed' | 'reason'>): void;
  /** Records the request body. `type` is the type of object that a protobuf body contains. */
  received(body: Body | PatchBody, type: ProtobufBodyType): void;
  answered(answer: Answer | ListAnswer): void;
  failed(status: Status): void;
  /** Adds an annotation to the events that follow. The first value of a key counts. */
  annotate(key: string, value: string): void;
  /** Called when the header of a response of indefinite length has been sent: of a watch or a connect request. */
  started(code: number): void;
  /** The handler failed unexpectedly; `failed` has the status that is sent. */
  panicked(): void;
  /** @param now the time of the monotonic clock, if the caller knows it */
  ended(code: number, now?: number): void;
}
