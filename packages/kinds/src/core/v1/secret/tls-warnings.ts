import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { Secret } from '../schema/index.ts';

interface Block {
  readonly type: string;
  readonly text: string;
}

/** The PEM blocks of a text, up to one without an end. */
function blocksOf(encoded: string | undefined): Block[] {
  const text = Buffer.from(encoded ?? '', 'base64').toString('latin1');
  const blocks: Block[] = [];
  for (let at = text.indexOf('-----BEGIN '); at >= 0; ) {
    const type = /^[^\n-]{1,64}(?=-----)/.exec(text.slice(at + 11, at + 80))?.[0] ?? '';
    const end = `-----END ${type}-----`;
    const last = text.indexOf(end, at);
    if (type === '' || last < 0) break;
    blocks.push({ type, text: text.slice(at, last + end.length) });
    at = text.indexOf('-----BEGIN ', last);
  }
  return blocks;
}

const isKey = ({ type }: Block) => type === 'PRIVATE KEY' || type.endsWith(' PRIVATE KEY');

/** What makes the certificate and the key of a TLS secret unusable, in the words of the TLS library of Go. */
export function tlsWarnings({ type, data }: Secret): string[] {
  if (type !== 'kubernetes.io/tls') return [];
  const problem = problemOf(blocksOf(data?.['tls.crt']), blocksOf(data?.['tls.key']));
  return problem === undefined ? [] : [problem];
}

function problemOf(certificates: readonly Block[], keys: readonly Block[]): string | undefined {
  const certificate = certificates.find(({ type }) => type === 'CERTIFICATE');
  if (!certificate) {
    if (certificates.length === 0) return 'tls: failed to find any PEM data in certificate input';
    if (certificates.length === 1 && certificates.some(isKey)) {
      const advice = 'PEM inputs may have been switched';
      return `tls: failed to find certificate PEM data in certificate input, but did find a private key; ${advice}`;
    }
    const block = '"CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following types';
    return `tls: failed to find ${block}: ${typesOf(certificates)}`;
  }
  const key = keys.find(isKey);
  if (!key) {
    if (keys.length === 0) return 'tls: failed to find any PEM data in key input';
    if (keys.length === 1 && keys[0]?.type === 'CERTIFICATE') {
      return 'tls: found a certificate rather than a key in the PEM for the private key';
    }
    const block = 'PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks';
    return `tls: failed to find ${block} of the following types: ${typesOf(keys)}`;
  }
  return mismatchOf(certificate, key);
}

function typesOf(blocks: readonly Block[]): string {
  return `[${blocks.map(({ type }) => type).join(' ')}]`;
}

function mismatchOf(certificate: Block, key: Block): string | undefined {
  const parsed = unlessThrown(() => new X509Certificate(certificate.text));
  if (!parsed) return 'x509: malformed certificate';
  const privateKey = unlessThrown(() => createPrivateKey(key.text));
  if (!privateKey) return 'tls: failed to parse private key';
  const type = unlessThrown(() => parsed.publicKey.asymmetricKeyType) ?? '';
  if (!['rsa', 'ec', 'ed25519'].includes(type)) return 'tls: unknown public key algorithm';
  if (privateKey.asymmetricKeyType !== type) return 'tls: private key type does not match public key type';
  return parsed.checkPrivateKey(privateKey) ? undefined : 'tls: private key does not match public key';
}

/** The libraries throw for all input that they cannot read. */
function unlessThrown<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
