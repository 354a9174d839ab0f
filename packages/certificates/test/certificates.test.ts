import { spawnSync } from 'node:child_process';
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { readCertificateRequest } from '@keelson/kinds';
import test from 'ava';
import { createAuthority, createRequest, createSelfSigned, issueCertificate } from '../src/index.ts';

const requestForNode = (name: string) =>
  createRequest({ organizations: ['system:nodes'], commonName: `system:node:${name}` });
const validity = { notBefore: new Date('2026-01-01T00:00:00Z'), notAfter: new Date('2027-01-01T00:00:00Z') };

test('a request contains the name of the node and its public key, and is signed by that key', async (t) => {
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

test('an authority issues certificates with the names, usages and validity of the order', async (t) => {
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
