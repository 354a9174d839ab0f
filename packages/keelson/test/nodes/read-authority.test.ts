import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '@keelson/core/internal';
import test from 'ava';
import { readCertificates } from '../../src/nodes/api-node-dialer.ts';
import { createAuthority } from '../../src/tls/authority.ts';

test('a file of authorities is used unchanged; a missing file or one without a certificate is a usage error', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-authority-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const { certificate } = await createAuthority(Date.now());
  const files: Readonly<Record<string, string>> = {
    good: certificate,
    empty: '',
    broken: '-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n',
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  t.is(await readCertificates('--agent-certificate-authority', join(folder, 'good')), certificate);
  for (const name of ['missing', 'empty', 'broken']) {
    await t.throwsAsync(
      readCertificates('--agent-certificate-authority', join(folder, name)),
      { instanceOf: UsageError, message: /^--agent-certificate-authority: / },
      name,
    );
  }
});
