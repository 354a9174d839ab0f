export {
  type CertificateSigningRequest,
  type CertificateSigningRequestCondition,
  CertificateSigningRequestConditionSchema,
  CertificateSigningRequestSchema,
  type CertificateSigningRequestSpec,
  CertificateSigningRequestSpecSchema,
  type CertificateSigningRequestStatus,
  CertificateSigningRequestStatusSchema,
} from './certificate-signing-request.ts';
