import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AlternativeNames, KeyPair } from '@keelson/certificates';
import type { CertificateSigner } from '@keelson/controllers';
import { isIP } from '@keelson/core';
import { UsageError } from '@keelson/core/internal';
import { type Clock, type Logger, makePrivateDirectory, silentLogger, systemClock } from '@keelson/core/runtime';
import { readPrivateFile, writePrivateFile } from '../base/private-file.ts';
import type { LeafRequest } from './authority.ts';

/** Name of the file in the data directory with the certificate of the authority. */
export const authorityFile = 'ca.crt';

/** The identity by which servers of aggregated APIs recognise this server. */
export interface FrontProxy {
  /** Certificates of the authority, PEM. */
  readonly authority: string;
  readonly client: KeyPair;
}

/** Common name of the client certificate for servers of aggregated APIs. */
export const frontProxyName = 'front-proxy-client';

/** Credentials of a server, its administrator and joining nodes; stored in the data directory. */
export interface Credentials {
  /** Certificate of the authority. */
  readonly authority: string;
  /** Key of the authority, for issuing certificates. */
  readonly authorityKey: string;
  readonly server: KeyPair;
  /** The certificate of the operator, for clients that name the server otherwise than `server` does. */
  readonly named?: KeyPair | undefined;
  readonly admin: KeyPair;
  /** Client certificate of the server for node agents. */
  readonly agentClient: KeyPair;
  /** Client certificate for servers of aggregated APIs, of an authority that signs nothing else. */
  readonly frontProxy?: FrontProxy | undefined;
  /** Client certificate that is only authorized to request the client certificate of a node. */
  readonly bootstrap: KeyPair;
}

const dayMs = 86_400_000;
/**
 * The bootstrap credential can be used to join as any node, so its validity is short. A start renews it after half of
 * it.
 */
const bootstrapLifeMs = 14 * dayMs;

async function readPair(data: string, name: string, logger: Logger): Promise<KeyPair | undefined> {
  const read = (suffix: string) => readPrivateFile(join(data, `${name}.${suffix}`), logger);
  const [certificate, key] = await Promise.all([read('crt'), read('key')]);
  return certificate === undefined || key === undefined ? undefined : { certificate, key };
}

async function writePair(data: string, name: string, pair: KeyPair): Promise<void> {
  await writePrivateFile(join(data, `${name}.key`), pair.key);
  await writePrivateFile(join(data, `${name}.crt`), pair.certificate);
}

/** False when only the certificate or only the key of a pair was replaced. */
function belongTogether({ certificate, key }: KeyPair): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

/** Reads the certificate of the operator, followed by its intermediates, and its key. @throws UsageError */
export async function readServingCertificate(certificateFile: string, keyFile: string): Promise<KeyPair> {
  const read = (option: string, path: string) =>
    readFile(path, 'utf8').catch((error: Error) => {
      throw new UsageError(`${option} ${path} cannot be read: ${error.message}`);
    });
  const [certificate, key] = await Promise.all([
    read('--tls-cert-file', certificateFile),
    read('--tls-private-key-file', keyFile),
  ]);
  const pair = { certificate, key };
  if (belongTogether(pair)) return pair;
  throw new UsageError(
    `--tls-cert-file ${certificateFile} and --tls-private-key-file ${keyFile} do not belong together; ` +
      'both are PEM, and the first certificate is that of the key',
  );
}

/** The certificates of a file that have not expired, each on a line of its own. */
function validBlocks(pem: string, now: number): string {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs) ?? [];
  return blocks
    .filter((block) => Date.parse(new X509Certificate(block).validTo) > now)
    .map((block) => `\n${block}`)
    .join('');
}

/** True when the certificate was issued by this authority, contains all names and does not expire soon. */
function stillGood(
  pair: KeyPair,
  authority: X509Certificate,
  request: LeafRequest,
  now: number,
  marginMs: number,
): boolean {
  const certificate = new X509Certificate(pair.certificate);
  const { dns, ips } = request.names ?? { dns: [], ips: [] };
  const covers = dns.every((name) => certificate.checkHost(name)) && ips.every((ip) => certificate.checkIP(ip));
  return (
    belongTogether(pair) &&
    certificate.verify(authority.publicKey) &&
    covers &&
    Date.parse(certificate.validTo) - now > marginMs
  );
}

function namesFor(hosts: readonly string[]): AlternativeNames {
  const dns = ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'];
  const ips = ['127.0.0.1', '::1'];
  const further = [...new Set(hosts)].filter((host) => ![...dns, ...ips, '0.0.0.0', '::'].includes(host));
  return {
    dns: [...dns, ...further.filter((host) => !isIP(host))],
    ips: [...ips, ...further.filter(isIP)],
  };
}

/**
 * Loads the credentials of a data directory; creates or renews those that are missing, of another authority or about to
 * expire. Restricts the modes of the directory and its files.
 *
 * @param host the address that the server listens on
 * @param moreHosts further names and addresses of the server's certificate
 */
export async function loadCredentials(
  data: string,
  host: string,
  now: number,
  logger: Logger = silentLogger,
  moreHosts: readonly string[] = [],
): Promise<Credentials> {
  makePrivateDirectory(data, logger);
  const { createAuthority, issueCertificate, renewBeforeMs } = await import('./authority.ts');
  const authorityOf = async (name: string, commonName?: string): Promise<KeyPair> => {
    const known = await readPair(data, name, logger);
    if (known !== undefined && !belongTogether(known)) {
      const certificate = join(data, `${name}.crt`);
      throw new Error(`${certificate} and ${name}.key do not belong together; restore both from one backup`);
    }
    if (known && Date.parse(new X509Certificate(known.certificate).validTo) - now >= renewBeforeMs) return known;
    const { certificate, key } = await createAuthority(now, commonName);
    // Certificates of the former authority are accepted until it expires, so that clients can be renewed.
    const made = { certificate: certificate.trimEnd() + validBlocks(known?.certificate ?? '', now), key };
    await writePair(data, name, made);
    return made;
  };
  const leafOf = async (signer: KeyPair, name: string, request: LeafRequest): Promise<KeyPair> => {
    // The first certificate of the file signs; further ones are former authorities.
    const root = new X509Certificate(signer.certificate);
    const existing = await readPair(data, name, logger);
    const marginMs = request.lifeMs === undefined ? renewBeforeMs : request.lifeMs / 2;
    if (existing !== undefined && stillGood(existing, root, request, now, marginMs)) return existing;
    const pair = await issueCertificate({ certificate: root.toString(), key: signer.key }, request, now);
    await writePair(data, name, pair);
    return pair;
  };
  const authority = await authorityOf('ca');
  const leaf = (name: string, request: LeafRequest) => leafOf(authority, name, request);
  const frontProxyAuthority = await authorityOf('front-proxy-ca', 'front-proxy-ca');
  return {
    authority: authority.certificate,
    authorityKey: authority.key,
    server: await leaf('server', {
      commonName: 'keelson-server',
      usage: 'server',
      names: namesFor([host, ...moreHosts]),
    }),
    admin: await leaf('admin', { commonName: 'kubernetes-admin', organizations: ['system:masters'], usage: 'client' }),
    // Agents that delegate authorization to the API accept this group.
    agentClient: await leaf('agent-client', {
      commonName: 'keelson-server',
      organizations: ['system:masters'],
      usage: 'client',
    }),
    frontProxy: {
      authority: frontProxyAuthority.certificate,
      client: await leafOf(frontProxyAuthority, frontProxyName, { commonName: frontProxyName, usage: 'client' }),
    },
    bootstrap: await leaf('bootstrap', {
      commonName: 'system:bootstrap:keelson',
      organizations: ['system:bootstrappers'],
      usage: 'client',
      lifeMs: bootstrapLifeMs,
    }),
  };
}

/**
 * Signs certificates by the authority of a data directory. The code is loaded on demand: a server without TLS signs
 * nothing.
 */
export async function credentialsSigner(
  { authority, authorityKey }: Pick<Credentials, 'authority' | 'authorityKey'>,
  clock: Clock = systemClock,
): Promise<CertificateSigner> {
  const { authoritySigner } = await import('./authority.ts');
  return authoritySigner({ certificate: new X509Certificate(authority).toString(), key: authorityKey }, clock);
}
