import type { CertificateRequest } from '@keelson/certificates';

/** A certificate to be issued; all fields have been checked. */
export interface CertificateOrder extends CertificateRequest {
  /** `digital signature`, `key encipherment`, `client auth`, `server auth`. */
  readonly usages: readonly string[];
  /** Requested validity from now in milliseconds; it ends with the validity of the authority at the latest. */
  readonly lifetimeMs: number;
}

/** Issues certificates signed by an authority. Returns PEM. */
export type CertificateSigner = (order: CertificateOrder) => Promise<string>;
