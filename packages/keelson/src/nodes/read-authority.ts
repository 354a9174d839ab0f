import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { UsageError } from '../config/usage-error.ts';

/** The authorities of node agents, PEM. @throws UsageError naming the option */
export async function readAuthority(path: string): Promise<string> {
  const option = '--agent-certificate-authority';
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw new UsageError(`${option}: cannot read ${path}: ${(error as Error).message}`);
  }
  // TLS passes over in silence what is no certificate, and would refuse every agent.
  const certificates = text.match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs) ?? [];
  if (certificates.length === 0) throw new UsageError(`${option}: ${path} has no certificate in PEM`);
  try {
    for (const certificate of certificates) new X509Certificate(certificate);
  } catch (error) {
    throw new UsageError(`${option}: ${path} has a certificate that cannot be read: ${(error as Error).message}`);
  }
  return text;
}
