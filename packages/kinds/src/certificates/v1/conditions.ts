import { type FieldError, fieldError, formatTime } from '@keelson/core';
import type { CertificateSigningRequest, CertificateSigningRequestCondition as Condition } from './schema/index.ts';

const path = 'status.conditions';
const decisions = ['Approved', 'Denied'];

const conditionsOf = ({ status }: CertificateSigningRequest): readonly Condition[] => status?.conditions ?? [];
const ofType = (request: CertificateSigningRequest, type: string) =>
  conditionsOf(request).filter((condition) => condition.type === type);

/** True when the request has a condition of this type. */
export function hasCondition(request: CertificateSigningRequest, type: string): boolean {
  return ofType(request, type).length > 0;
}

/**
 * Sets the times that the client omitted. A condition whose status has not changed keeps its transition time.
 */
export function stampConditions(request: CertificateSigningRequest, old: CertificateSigningRequest, now: Date): void {
  const time = formatTime(now);
  const before = new Map<string, Condition>();
  for (const condition of conditionsOf(old)) {
    const key = identityOf(condition);
    if (!before.has(key)) before.set(key, condition);
  }
  for (const condition of request.status?.conditions ?? []) {
    condition.lastUpdateTime ??= time;
    condition.lastTransitionTime ??= before.get(identityOf(condition))?.lastTransitionTime ?? time;
  }
}

function identityOf({ type, status }: Condition): string {
  return JSON.stringify([type, status]);
}

/** Rejects the removal of the conditions Approved, Denied and Failed. */
export function removedConditions(request: CertificateSigningRequest, old: CertificateSigningRequest): FieldError[] {
  return [...decisions, 'Failed']
    .filter((type) => ofType(request, type).length < ofType(old, type).length)
    .map((type) => fieldError.forbidden(path, `updates may not remove a condition of type ${JSON.stringify(type)}`));
}

/** Restores the decisions of the stored request, for writes that must not change them. */
export function keepDecisions(request: CertificateSigningRequest, old: CertificateSigningRequest): void {
  const conditions = request.status?.conditions ?? [];
  const decided = new Map(decisions.map((type) => [type, ofType(old, type)[0]]));
  for (const [i, { type }] of conditions.entries()) {
    const before = decided.get(type);
    if (before !== undefined) conditions[i] = { ...before };
  }
}

/** Rejects added decisions, which are valid only in the approval subresource. */
export function addedDecisions(request: CertificateSigningRequest, old: CertificateSigningRequest): FieldError[] {
  return decisions
    .filter((type) => ofType(request, type).length > ofType(old, type).length)
    .map((type) => fieldError.forbidden(path, `updates may not add a condition of type ${JSON.stringify(type)}`));
}
