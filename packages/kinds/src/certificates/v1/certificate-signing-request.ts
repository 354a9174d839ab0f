import { type Column, defineKind, humanDuration, type KindDefinition } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { hasCondition } from './conditions.ts';
import { applyApproval, requestStrategy } from './request-strategy.ts';
import { CertificateSigningRequestSchema, type CertificateSigningRequest as Request } from './schema/index.ts';

function conditionText(request: Request): string {
  const decision = hasCondition(request, 'Denied')
    ? 'Denied'
    : hasCondition(request, 'Approved')
      ? 'Approved'
      : 'Pending';
  const failed = hasCondition(request, 'Failed') ? ',Failed' : '';
  return `${decision}${failed}${request.status?.certificate ? ',Issued' : ''}`;
}

function durationText({ spec }: Request): string {
  return spec?.expirationSeconds === undefined ? '<none>' : humanDuration(spec.expirationSeconds * 1000);
}

const columns: readonly Column<Request>[] = [
  nameColumn(),
  ageColumn,
  column('SignerName', 'string', 'Signer of the certificate.', ({ spec }) => spec?.signerName || '<none>'),
  column('Requestor', 'string', 'User that created the request.', ({ spec }) => spec?.username ?? ''),
  column('RequestedDuration', 'string', 'Requested validity of the certificate.', durationText),
  column('Condition', 'string', 'Pending, Approved or Denied, and Failed or Issued.', conditionText),
];

/** A request for a certificate. An approver approves or denies it, and a signer issues the certificate. */
export const CertificateSigningRequest: KindDefinition<Request> = defineKind({
  group: 'certificates.k8s.io',
  version: 'v1',
  kind: 'CertificateSigningRequest',
  scope: 'Cluster',
  names: { shortNames: ['csr'] },
  schema: CertificateSigningRequestSchema,
  strategy: requestStrategy,
  subresources: [
    { type: 'replace', name: 'approval', patchable: true, apply: applyApproval },
    { type: 'status', name: 'status' },
  ],
  columns,
  selectableFields: [['spec.signerName', ({ spec }) => spec?.signerName ?? '']],
});
export type CertificateSigningRequest = Request;
