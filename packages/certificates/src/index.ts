export {
  type Content,
  createAuthority,
  createSelfSigned,
  issueCertificate,
  type KeyPair,
  signCertificate,
  type Validity,
} from './certificate.ts';
export {
  type CertificateRequest,
  createRequest,
  type KeyAndRequest,
  readCertificateRequest,
} from './certificate-request.ts';
export type { AlternativeNames, RequestedNames } from './extensions.ts';
export type { RequestSubject, Subject } from './names.ts';
export { createRevocationList, parseRevocationLists, type RevocationList } from './revocation-list.ts';
