import { spawnSync } from 'node:child_process';
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import {
  createAuthority,
  createRequest,
  createRevocationList,
  createSelfSigned,
  issueCertificate,
  parseRevocationLists,
  readCertificateRequest,
} from '../src/index.ts';

const requestForNode = (name: string) =>
  createRequest({ organizations: ['system:nodes'], commonName: `system:node:${name}` });
const validity = { notBefore: new Date('2026-01-01T00:00:00Z'), notAfter: new Date('2027-01-01T00:00:00Z') };

test('a certificate request contains the name of the node and its public key, and is signed with its private key', async (t) => {
  for (const name of ['n1', `long-${'x'.repeat(240)}`]) {
    const { key, request } = await requestForNode(name);
    const read = readCertificateRequest(request);
    t.deepEqual(read.subject, { commonName: `system:node:${name}`, organizations: ['system:nodes'], others: [] });
    const own = createPublicKey(createPrivateKey(key));
    t.deepEqual(read.publicKey, own.export({ type: 'spki', format: 'der' }));
    t.is(own.asymmetricKeyDetails?.namedCurve, 'prime256v1');
  }
});

const openssl = spawnSync('openssl', ['version']).status === 0 || process.env['CI'] ? test : test.skip;

openssl('openssl parses the request and verifies its signature', async (t) => {
  const { request } = await requestForNode('n1');
  const { status, stdout, stderr } = spawnSync('openssl', ['req', '-verify', '-noout', '-subject'], { input: request });
  t.is(status, 0, String(stderr));
  t.regex(String(stdout), /O ?= ?system:nodes, CN ?= ?system:node:n1/);
});

test('an authority issues certificates with the requested names, usages and validity', async (t) => {
  const authority = await createAuthority('test-ca', validity);
  const root = new X509Certificate(authority.certificate);
  t.true(root.ca);
  t.is(root.subject, 'CN=test-ca');
  const { certificate, key } = await issueCertificate(authority, {
    subject: { commonName: 'web', organizations: ['a', 'b'] },
    names: { dns: ['web.example'], ips: ['192.0.2.1', '2001:db8::1'] },
    usages: ['digital signature', 'server auth'],
    notBefore: validity.notBefore,
    notAfter: new Date('2099-01-01T00:00:00Z'),
  });
  const parsed = new X509Certificate(certificate);
  t.true(parsed.verify(root.publicKey));
  t.true(parsed.checkPrivateKey(createPrivateKey(key)));
  t.false(parsed.ca);
  t.deepEqual(parsed.subject.split('\n'), ['O=a', 'O=b', 'CN=web']);
  t.deepEqual(parsed.keyUsage, ['1.3.6.1.5.5.7.3.1']);
  t.is(parsed.checkHost('web.example'), 'web.example');
  t.deepEqual(
    ['192.0.2.1', '2001:db8::1', '192.0.2.2'].map((ip) => parsed.checkIP(ip)),
    ['192.0.2.1', '2001:db8::1', undefined],
  );
  t.is(parsed.validFrom, root.validFrom);
  t.is(parsed.validTo, root.validTo, 'a certificate does not outlive its authority');
});

openssl(
  'openssl accepts the chains and the revocation lists of authorities, including an RSA authority of openssl',
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'keelson-certificates-'));
    t.teardown(() => rmSync(folder, { recursive: true }));
    const file = (name: string, content?: string) => {
      const path = join(folder, name);
      if (content !== undefined) writeFileSync(path, content);
      return path;
    };
    const subject = '/O=Größe 1/CN=of openssl';
    const made = spawnSync('openssl', [
      ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-utf8', '-subj', subject, '-days', '400'],
      ...['-addext', 'keyUsage=critical,keyCertSign,cRLSign'],
      ...['-keyout', file('key'), '-out', file('certificate')],
    ]);
    t.is(made.status, 0, String(made.stderr));
    const foreign = { certificate: readFileSync(file('certificate'), 'utf8'), key: readFileSync(file('key'), 'utf8') };
    const now = { notBefore: new Date(), notAfter: new Date(Date.now() + 86_400_000) };
    for (const authority of [foreign, await createAuthority('a name with * in it', now)]) {
      const content = { subject: { commonName: 'leaf' }, usages: ['client auth'], ...now };
      const [kept, revoked] = await Promise.all([0, 1].map(() => issueCertificate(authority, content)));
      if (kept === undefined || revoked === undefined) return t.fail();
      const list = createRevocationList(authority, [revoked.certificate], now);
      const verify = (certificate: string) =>
        spawnSync('openssl', [
          ...['verify', '-x509_strict', '-crl_check', '-CAfile', file('ca', authority.certificate)],
          ...['-CRLfile', file('list', list), file('leaf', certificate)],
        ]);
      const good = verify(kept.certificate);
      t.is(good.status, 0, String(good.stderr));
      t.regex(String(verify(revoked.certificate).stderr), /certificate revoked/);
      const { revokes, nextUpdateMs } = parseRevocationLists(Buffer.from(list));
      t.true(revokes(new X509Certificate(revoked.certificate).raw));
      t.false(revokes(new X509Certificate(kept.certificate).raw));
      t.is(nextUpdateMs, Math.floor(now.notAfter.getTime() / 1000) * 1000);
      const der = Buffer.from(list.replace(/-----[^-]+-----/g, ''), 'base64');
      t.true(parseRevocationLists(der).revokes(new X509Certificate(revoked.certificate).raw));
    }
  },
);

test('data that is not a revocation list is rejected', async (t) => {
  const { certificate } = await createAuthority('test-ca', validity);
  const list = createRevocationList(await createAuthority('test-ca', validity), [certificate], validity);
  const der = Buffer.from(list.replace(/-----[^-]+-----/g, ''), 'base64');
  const message = 'the file is not a certificate revocation list in PEM or DER';
  for (let end = 0; end < der.length; end += 1) t.throws(() => parseRevocationLists(der.subarray(0, end)), { message });
  t.throws(() => parseRevocationLists(new X509Certificate(certificate).raw), { message });
  t.throws(() => parseRevocationLists(Buffer.from(certificate)), { message: /no revocation list in PEM/ });
});

test('dates from 2050 on are encoded as GeneralizedTime, and long names and lists have multi-byte lengths', async (t) => {
  const later = { notBefore: new Date('2049-12-31T23:59:59Z'), notAfter: new Date('2050-01-01T00:00:00Z') };
  const authority = await createAuthority(`long ${'x'.repeat(300)}`, later);
  const parsed = new X509Certificate(authority.certificate);
  t.is(parsed.validFrom, 'Dec 31 23:59:59 2049 GMT');
  t.is(parsed.validTo, 'Jan  1 00:00:00 2050 GMT');
  t.is(parsed.subject, `CN=long ${'x'.repeat(300)}`);
  const lists = createRevocationList(authority, Array<string>(3000).fill(authority.certificate), later);
  t.true(lists.length > 65_536);
  t.true(parseRevocationLists(Buffer.from(lists)).revokes(parsed.raw));
});

test('an IP address is encoded as octets in the certificate, and texts that are not IP addresses are rejected', async (t) => {
  const create = (ip: string) =>
    createSelfSigned({ subject: { commonName: 'n' }, usages: [], names: { dns: [], ips: [ip] }, ...validity });
  for (const ip of ['::', '::1', 'fe80::', '1:2:3:4:5:6:7:8', '64:ff9b::192.0.2.33', '::ffff:192.0.2.1', '0.0.0.0'])
    t.is(new X509Certificate((await create(ip)).certificate).checkIP(ip), ip);
  for (const text of ['', '1.2.3', 'host', '1::2::3', 'fe80::1%eth0'])
    await t.throwsAsync(create(text), { message: `${JSON.stringify(text)} is not an IP address` });
});

test('a self-signed certificate verifies with its own key', async (t) => {
  const { certificate } = await createSelfSigned({
    subject: { commonName: 'n1' },
    usages: ['server auth'],
    ...validity,
  });
  const parsed = new X509Certificate(certificate);
  t.true(parsed.verify(parsed.publicKey));
  t.is(parsed.subject, 'CN=n1');
  t.is(parsed.subjectAltName, undefined);
});
