import type { CertificateRequest } from '@keelson/certificates';

/** A certificate to be issued; all fields have been checked. */
export interface CertificateOrder extends CertificateRequest {
  /** Key usages, a subset of `digital signature`, `key encipherment`, `client auth` and `server auth`. */
  readonly usages: readonly string[];
  /** Requested validity in milliseconds from now, limited by the validity of the authority. */
  readonly lifetimeMs: number;
}

/** Issues certificates signed by an authority. Returns PEM. */
export type CertificateSigner = (order: CertificateOrder) => Promise<string>;
