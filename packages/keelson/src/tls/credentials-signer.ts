import type { CertificateSigner } from '@keelson/controllers';
import { type Clock, systemClock } from '@keelson/core';
import type { Credentials } from './credentials.ts';

/**
 * Signs in the name of the authority of a data directory. Its parts are loaded on call: a server without TLS signs
 * nothing.
 */
export async function credentialsSigner(
  { authority, authorityKey }: Pick<Credentials, 'authority' | 'authorityKey'>,
  clock: Clock = systemClock,
): Promise<CertificateSigner> {
  const { authoritySigner } = await import('./authority-signer.ts');
  return authoritySigner({ certificate: authority, key: authorityKey }, clock);
}
