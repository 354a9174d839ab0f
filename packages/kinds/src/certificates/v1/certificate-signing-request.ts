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
  column('SignerName', 'string', 'Who is to sign.', ({ spec }) => spec?.signerName || '<none>'),
  column('Requestor', 'string', 'Who asks.', ({ spec }) => spec?.username ?? ''),
  column('RequestedDuration', 'string', 'How long the certificate should be good.', durationText),
  column('Condition', 'string', 'Pending, Approved or Denied, and what came of it.', conditionText),
];

/** Asks for a certificate; somebody approves or denies, and a signer issues it. */
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
