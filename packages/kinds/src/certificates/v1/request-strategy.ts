import {
  type FieldError,
  fieldError,
  type ObjectMeta,
  type Strategy,
  type StrategyContext,
  statusErrors,
} from '@keelson/core';
import { newErrors } from '../../validation/checks.ts';
import { checkRequest } from './check-request.ts';
import { addedDecisions, keepDecisions, removedConditions, stampConditions } from './conditions.ts';
import type { CertificateSigningRequest as Request } from './schema/index.ts';

function validate(request: Request): FieldError[] {
  const errors = newErrors();
  checkRequest(request, errors);
  return errors;
}

function resetCertificate(request: Request, old: Request): FieldError[] {
  const before = old.status?.certificate ?? '';
  if (before === '' || request.status?.certificate === before) return [];
  return [fieldError.forbidden('status.certificate', 'updates may not modify existing certificate content')];
}

/** Strategy of certificate signing requests: the server sets the requesting user, and the spec is immutable. */
export const requestStrategy: Strategy<Request> = {
  generation: 'none',
  prepareForCreate(request, { request: { user } }) {
    const { request: pem, signerName, expirationSeconds, usages } = request.spec;
    request.spec = {
      request: pem,
      signerName,
      ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
      ...(usages === undefined ? {} : { usages }),
      username: user.name,
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      groups: [...user.groups],
      ...(user.extra === undefined
        ? {}
        : { extra: Object.fromEntries(Object.entries(user.extra).map(([key, values]) => [key, [...values]])) }),
    };
  },
  prepareForUpdate(request, old) {
    request.spec = old.spec;
  },
  prepareForStatusUpdate(request, old, { now }) {
    keepDecisions(request, old);
    stampConditions(request, old, now);
  },
  validate,
  validateStatusUpdate: (request, old) => [
    ...validate(request),
    ...removedConditions(request, old),
    ...addedDecisions(request, old),
    ...resetCertificate(request, old),
  ],
};

const writableMetadata = ['labels', 'annotations', 'finalizers', 'ownerReferences'] as const;

/**
 * Applies the changes of `PUT .../approval`: conditions, of which decisions cannot be removed, and the metadata that
 * every write of an object sets.
 * @throws StatusError 422
 */
export function applyApproval(stored: Request, object: Request, { now }: StrategyContext): void {
  const old = structuredClone(stored);
  const { conditions } = object.status ?? {};
  const metadata: ObjectMeta = { ...stored.metadata };
  for (const field of writableMetadata) delete metadata[field];
  const { labels, annotations, finalizers, ownerReferences } = object.metadata ?? {};
  stored.metadata = {
    ...metadata,
    ...(labels && { labels }),
    ...(annotations && { annotations }),
    ...(finalizers && { finalizers }),
    ...(ownerReferences && { ownerReferences }),
  };
  stored.status = { ...stored.status };
  if (conditions?.length) stored.status.conditions = conditions;
  else delete stored.status.conditions;
  stampConditions(stored, old, now);
  const errors = removedConditions(stored, old);
  if (errors.length === 0) return;
  const kind = { group: 'certificates.k8s.io', version: 'v1', kind: 'CertificateSigningRequest' };
  throw statusErrors.invalid(kind, stored.metadata?.name ?? '', errors);
}
