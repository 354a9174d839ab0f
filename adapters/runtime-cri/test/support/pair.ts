import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { installPrograms } from '@keelson/test-support';
import type { PinnedTls } from '../../src/index.ts';

/** Programs for {@link newPair} that are missing on this machine. */
export const lackingForPairs = installPrograms(['openssl'], ['openssl']);

/** A key and a certificate of it, for both ends of a connection. */
export function newPair(): PinnedTls {
  const folder = mkdtempSync('/tmp/keelson-cri-pair-');
  try {
    const [key, certificate] = [join(folder, 'key'), join(folder, 'certificate')];
    const kind = [
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=test',
    ];
    execFileSync('openssl', ['req', '-x509', ...kind, '-keyout', key, '-out', certificate], { stdio: 'ignore' });
    const shown = readFileSync(certificate, 'utf8');
    return { key: readFileSync(key, 'utf8'), certificate: shown, peer: shown };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
