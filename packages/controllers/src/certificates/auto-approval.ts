import { type CertificateSigningRequest, readCertificateRequest } from '@keelson/kinds';
import { nodeClientSigner, signerProblem } from './signer-rules.ts';

const bootstrappersGroup = 'system:bootstrappers';
const nodesGroup = 'system:nodes';

/**
 * Why a request may be approved without a person, undefined when it may not: it is for the client certificate of a
 * node, and comes from whoever holds the bootstrap credential, or from that node itself, which renews.
 */
export function approvalReason({ spec }: CertificateSigningRequest): string | undefined {
  if (spec.signerName !== nodeClientSigner) return undefined;
  const request = readCertificateRequest(Buffer.from(spec.request, 'base64').toString('latin1'));
  if (signerProblem(nodeClientSigner, request, spec.usages ?? []) !== undefined) return undefined;
  const groups = spec.groups ?? [];
  if (groups.includes(nodesGroup) && spec.username === request.subject.commonName) {
    return 'The node renews its own client certificate.';
  }
  if (groups.includes(bootstrappersGroup)) return 'A node joins with the bootstrap credential.';
  return undefined;
}
