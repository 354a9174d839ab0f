import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import type { CertificateOrder } from '@keelson/controllers';
import { FakeClock } from '@keelson/core/runtime';
import test from 'ava';
import { authoritySigner, createAuthority } from '../../src/tls/authority.ts';

const hourMs = 3_600_000;
const clock = new FakeClock();
const authority = await createAuthority(clock.now());

const noNames = { dns: [], ips: [], emails: [], uris: [], others: 0 };
const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

const order: CertificateOrder = {
  subject: { commonName: 'system:node:n1', organizations: ['system:nodes'], others: ['2.5.4.6'] },
  names: noNames,
  publicKey: publicKey.export({ type: 'spki', format: 'der' }),
  usages: ['digital signature', 'client auth'],
  lifetimeMs: hourMs,
};

const sign = async (changes: Partial<CertificateOrder>, key = authority) =>
  new X509Certificate(await authoritySigner(key, clock)({ ...order, ...changes }));

test('a client certificate is signed by the authority and contains only the fields of the order', async (t) => {
  const certificate = await sign({});
  t.true(certificate.verify(new X509Certificate(authority.certificate).publicKey));
  t.deepEqual(certificate.subject.split('\n'), ['O=system:nodes', 'CN=system:node:n1']);
  t.deepEqual(certificate.keyUsage, ['1.3.6.1.5.5.7.3.2']);
  t.is(certificate.subjectAltName, undefined);
  t.false(certificate.ca);
  t.deepEqual(certificate.publicKey.export({ type: 'spki', format: 'der' }), order.publicKey);
  t.is(Date.parse(certificate.validTo), clock.now() + hourMs);
  t.is(Date.parse(certificate.validFrom), clock.now() - 300_000);
});

test('a serving certificate is valid for its names', async (t) => {
  const names = { ...noNames, dns: ['n1.example.com'], ips: ['192.0.2.1', '2001:db8::1'] };
  const certificate = await sign({ names, usages: ['digital signature', 'key encipherment', 'server auth'] });
  t.deepEqual(certificate.keyUsage, ['1.3.6.1.5.5.7.3.1']);
  t.is(certificate.checkHost('n1.example.com'), 'n1.example.com');
  t.is(certificate.checkIP('192.0.2.1'), '192.0.2.1');
  t.is(certificate.checkIP('2001:db8::1'), '2001:db8::1');
});

test('no certificate outlives its authority', async (t) => {
  const { validTo } = new X509Certificate(authority.certificate);
  const certificate = await sign({ lifetimeMs: 100 * 365 * 24 * hourMs });
  t.is(certificate.validTo, validTo);
});
