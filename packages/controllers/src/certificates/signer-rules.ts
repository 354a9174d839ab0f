import { isIP } from 'node:net';
import type { CertificateRequest } from '@keelson/certificates';

/** Signers of this server. */
export const nodeClientSigner = 'kubernetes.io/kube-apiserver-client-kubelet';
const anyClientSigner = 'kubernetes.io/kube-apiserver-client';
export const nodeServingSigner = 'kubernetes.io/kubelet-serving';

const nodesGroup = 'system:nodes';
const mastersGroup = 'system:masters';
/** Prefix of the user names of nodes. */
export const nodePrefix = 'system:node:';

type Rule = (request: CertificateRequest, usages: readonly string[]) => string | undefined;

function usageProblem(
  usages: readonly string[],
  needed: readonly string[],
  allowed: readonly string[],
): string | undefined {
  const missing = needed.find((usage) => !usages.includes(usage));
  if (missing !== undefined) return `the usage ${JSON.stringify(missing)} is missing`;
  const extra = usages.find((usage) => !allowed.includes(usage));
  return extra === undefined ? undefined : `the usage ${JSON.stringify(extra)} is not supported by this signer`;
}

function nodeSubjectProblem({ subject }: CertificateRequest): string | undefined {
  const [organization, ...more] = subject.organizations;
  if (organization !== nodesGroup || more.length > 0) return `the only organization must be ${nodesGroup}`;
  if (!subject.commonName.startsWith(nodePrefix) || subject.commonName === nodePrefix) {
    return `the common name must be ${nodePrefix} and the name of a node`;
  }
  return undefined;
}

function hasNames({ names }: CertificateRequest): boolean {
  return names.dns.length + names.ips.length + names.emails.length + names.uris.length + names.others > 0;
}

const nodeClient: Rule = (request, usages) =>
  nodeSubjectProblem(request) ??
  (hasNames(request) ? 'a client certificate of a node has no alternative names' : undefined) ??
  usageProblem(usages, ['client auth', 'digital signature'], ['client auth', 'digital signature', 'key encipherment']);

const anyClient: Rule = ({ subject }, usages) => {
  if (subject.commonName === '') return 'the common name, which is the name of the user, is missing';
  if (subject.organizations.includes(mastersGroup)) return `certificates of the group ${mastersGroup} are not issued`;
  return usageProblem(usages, ['client auth'], ['client auth', 'digital signature', 'key encipherment']);
};

const hostName = /^(?:\*\.)?[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)*$/i;

const nodeServing: Rule = (request, usages) => {
  const { dns, ips, emails, uris, others } = request.names;
  if (emails.length + uris.length + others > 0) return 'alternative names must be DNS names and IP addresses';
  if (dns.length + ips.length === 0) return 'a DNS name or an IP address is missing among the alternative names';
  const wrong = dns.find((name) => name.length > 253 || !hostName.test(name)) ?? ips.find((ip) => isIP(ip) === 0);
  if (wrong !== undefined) return `the alternative name ${JSON.stringify(wrong)} is not a DNS name`;
  return (
    nodeSubjectProblem(request) ??
    usageProblem(usages, ['server auth', 'digital signature'], ['server auth', 'digital signature', 'key encipherment'])
  );
};

const rules: ReadonlyMap<string, Rule> = new Map([
  [nodeClientSigner, nodeClient],
  [anyClientSigner, anyClient],
  [nodeServingSigner, nodeServing],
]);

/** True for the signers whose certificates this server issues. */
export function isOwnSigner(signerName: string): boolean {
  return rules.has(signerName);
}

/** The reason why a signer of this server does not issue the requested certificate, or undefined. */
export function signerProblem(
  signerName: string,
  request: CertificateRequest,
  usages: readonly string[],
): string | undefined {
  return rules.get(signerName)?.(request, usages);
}
