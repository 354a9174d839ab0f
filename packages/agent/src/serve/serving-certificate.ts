import { X509Certificate } from 'node:crypto';
import { chmod, mkdir, readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import * as certificates from '@keelson/certificates';
import { replaceFile } from '@keelson/container-host';
import { UsageError } from '@keelson/core/internal';
import { agentName } from '../base/agent-name.ts';
import type { ServerConfig } from '../base/config/agent-config.ts';

const lifeMs = 365 * 86_400_000;
/** Start of validity before the current time, because clocks of clients may differ. */
const backdateMs = 3_600_000;

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Reads the configured pair. @throws UsageError that names the option whose file cannot be used */
async function givenPair(certificateFile: string, keyFile: string): Promise<certificates.KeyPair> {
  const read = async (option: string, path: string) => {
    try {
      return await readFile(path, 'utf8');
    } catch (error) {
      throw new UsageError(`${option}: cannot read ${path}: ${(error as Error).message}`);
    }
  };
  const certificate = await read('--tls-cert-file', certificateFile);
  const key = await read('--tls-private-key-file', keyFile);
  try {
    createSecureContext({ cert: certificate, key });
  } catch (error) {
    throw new UsageError(`--tls-cert-file and --tls-private-key-file do not match: ${(error as Error).message}`);
  }
  return { certificate, key };
}

/** True for a matching pair that has not expired. */
function isGood({ certificate, key }: certificates.KeyPair, nowMs: number): boolean {
  try {
    createSecureContext({ cert: certificate, key });
    return Date.parse(new X509Certificate(certificate).validTo) > nowMs;
  } catch {
    return false;
  }
}

/**
 * The serving certificate of the main port: the configured one, otherwise a self-signed one that is stored in
 * --cert-dir and replaced when it expires.
 *
 * @param names the names and addresses of the node, its name first
 */
export async function servingPair(
  config: Pick<ServerConfig, 'tlsCertFile' | 'tlsPrivateKeyFile' | 'certDir'>,
  names: readonly string[],
  nowMs: number,
): Promise<certificates.KeyPair> {
  const { tlsCertFile, tlsPrivateKeyFile, certDir } = config;
  if (tlsCertFile !== undefined && tlsPrivateKeyFile !== undefined) return givenPair(tlsCertFile, tlsPrivateKeyFile);
  const [certificatePath, keyPath] = [join(certDir, `${agentName}.crt`), join(certDir, `${agentName}.key`)];
  const [certificate, key] = await Promise.all([readIfThere(certificatePath), readIfThere(keyPath)]);
  if (certificate !== undefined && key !== undefined && isGood({ certificate, key }, nowMs))
    return { certificate, key };
  const made = await createSelfSigned(names, nowMs);
  await mkdir(certDir, { recursive: true, mode: 0o700 });
  await replaceFile(keyPath, made.key);
  await replaceFile(certificatePath, made.certificate);
  await chmod(certificatePath, 0o644);
  return made;
}

/**
 * Creates a key and a self-signed certificate for these names and addresses, valid for one year by default.
 */
export async function createSelfSigned(
  names: readonly string[],
  nowMs: number,
  validity: certificates.Validity = { notBefore: new Date(nowMs - backdateMs), notAfter: new Date(nowMs + lifeMs) },
): Promise<certificates.KeyPair> {
  return certificates.createSelfSigned({
    subject: { commonName: names[0] ?? 'node' },
    names: { dns: names.filter((name) => isIP(name) === 0), ips: names.filter((name) => isIP(name) !== 0) },
    usages: ['digital signature', 'server auth'],
    ...validity,
  });
}
