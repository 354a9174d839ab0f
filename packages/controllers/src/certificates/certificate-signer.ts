import type { CertificateRequest } from '@keelson/kinds';

/** A certificate that is to be issued; everything in it has been checked. */
export interface CertificateOrder extends CertificateRequest {
  /** `digital signature`, `key encipherment`, `client auth`, `server auth`. */
  readonly usages: readonly string[];
  /** How long it should be good, from now on; an authority that ends sooner decides. */
  readonly lifetimeMs: number;
}

/** Issues certificates in the name of an authority. Returns PEM. */
export type CertificateSigner = (order: CertificateOrder) => Promise<string>;
