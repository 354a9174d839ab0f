import { always, filled, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';

/** Usages that a request may name. */
export const certificateUsages: readonly string[] = [
  'any',
  'cert sign',
  'client auth',
  'code signing',
  'content commitment',
  'crl sign',
  'data encipherment',
  'decipher only',
  'digital signature',
  'email protection',
  'encipher only',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'key agreement',
  'key encipherment',
  'microsoft sgc',
  'netscape sgc',
  'ocsp signing',
  's/mime',
  'server auth',
  'signing',
  'timestamping',
];

const condition = s.message(
  'k8s.io.api.certificates.v1.CertificateSigningRequestCondition',
  'What was decided about a request, or what came of it.',
  {
    type: always(1, s.string(), 'Approved, Denied or Failed.'),
    status: always(6, s.string(), 'True, False or Unknown; Approved, Denied and Failed are True or absent.'),
    reason: optional(2, s.string(), 'One CamelCase word for why.'),
    message: optional(3, s.string(), 'Human-readable message.'),
    lastUpdateTime: optional(4, s.time(), 'When the condition was last written.'),
    lastTransitionTime: optional(5, s.time(), 'When status last changed.'),
  },
);
export interface CertificateSigningRequestCondition extends Infer<typeof condition> {}
export const CertificateSigningRequestConditionSchema: Schema<CertificateSigningRequestCondition> = condition;

const spec = s.message(
  'k8s.io.api.certificates.v1.CertificateSigningRequestSpec',
  'The requested certificate and the requesting user. Immutable.',
  {
    request: always(1, s.bytes(), 'PEM block CERTIFICATE REQUEST with a PKCS#10 request.'),
    signerName: always(7, s.string(), 'Who is to sign: example.com/signer-name.'),
    expirationSeconds: optional(
      8,
      s.int32(),
      'How long the certificate should be good; signers may decide otherwise.',
      {
        presence: true,
      },
    ),
    usages: optional(
      5,
      s.list(s.string({ values: certificateUsages }), { listType: 'atomic' }),
      'What the certificate may be used for.',
    ),
    username: optional(2, s.string(), 'Name of the user who created the request; set by the server.'),
    uid: optional(3, s.string(), 'Identity of that user; set by the server.'),
    groups: optional(4, s.list(s.string(), { listType: 'atomic' }), 'Groups of that user; set by the server.'),
    extra: optional(6, s.map(s.list(s.string())), 'What else the server knows about that user.'),
  },
);
export interface CertificateSigningRequestSpec extends Infer<typeof spec> {}
export const CertificateSigningRequestSpecSchema: Schema<CertificateSigningRequestSpec> = spec;

const status = s.message('k8s.io.api.certificates.v1.CertificateSigningRequestStatus', 'What became of a request.', {
  conditions: optional(
    1,
    s.list(CertificateSigningRequestConditionSchema, { listType: 'map', listMapKeys: ['type'] }),
    'The decision, and failures.',
  ),
  certificate: optional(2, s.bytes(), 'PEM blocks CERTIFICATE: the issued one, then intermediates.'),
});
export interface CertificateSigningRequestStatus extends Infer<typeof status> {}
export const CertificateSigningRequestStatusSchema: Schema<CertificateSigningRequestStatus> = status;

const request = s.message('k8s.io.api.certificates.v1.CertificateSigningRequest', 'Asks for a certificate.', {
  spec: always(2, CertificateSigningRequestSpecSchema, 'What is wanted.'),
  status: filled(3, CertificateSigningRequestStatusSchema, 'What became of it.'),
});
export interface CertificateSigningRequest extends KubeObject, Infer<typeof request> {}
export const CertificateSigningRequestSchema: Schema<CertificateSigningRequest> = request;
