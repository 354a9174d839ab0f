import { readFileSync } from 'node:fs';
import { readCertificateRequest } from '@keelson/certificates';
import { isStatusError, type StrategyContext, type UserInfo } from '@keelson/core';
import test from 'ava';
import { CertificateSigningRequest } from '../src/index.ts';
import { contextOf, create, now, row, update, updateStatus } from './helpers/writes.ts';

type Name = 'node' | 'serving' | 'person' | 'ed25519' | 'sha1' | 'cert';
// Made with `openssl req`; compiled tests run from dist/test.
const file = new URL('../../test/fixtures/certificate-requests.json', import.meta.url);
const pems = JSON.parse(readFileSync(file, 'utf8')) as Record<Name, string>;

const base64 = (text: string) => Buffer.from(text).toString('base64');
const sound = { request: base64(pems.node), signerName: 'example.com/signer', usages: ['client auth'] };
const manifest = (spec: Record<string, unknown>) => ({ metadata: { name: 'x' }, spec: { ...sound, ...spec } });
const stored = (changes: Partial<CertificateSigningRequest['status']> = {}) => {
  const { object } = create(CertificateSigningRequest, manifest({}));
  return { ...object, status: { ...changes } } as CertificateSigningRequest;
};
const condition = (type: string, status = 'True') => ({ type, status, reason: 'Test' });

/** A request with one octet of its content changed. */
function spoilt(pem: string, at: number): string {
  const der = Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64');
  const index = at < 0 ? der.length + at : at;
  der[index] = (der[index] ?? 0) ^ 1;
  return `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;
}

const specs: readonly (readonly [title: string, spec: Record<string, unknown>, causes: readonly string[]])[] = [
  ['an EC request', {}, []],
  ['an RSA request', { request: base64(pems.person) }, []],
  ['a P-384 request with names', { request: base64(pems.serving) }, []],
  ['an Ed25519 request', { request: base64(pems.ed25519) }, []],
  ['text before the block', { request: base64(`for n1\n${pems.node}`) }, []],
  ['no request', { request: '' }, ['spec.request Invalid']],
  ['a certificate for a request', { request: base64(pems.cert) }, ['spec.request Invalid']],
  ['a request signed with SHA-1', { request: base64(pems.sha1) }, ['spec.request Invalid']],
  ['a request whose signature is another', { request: base64(spoilt(pems.node, -1)) }, ['spec.request Invalid']],
  ['a request whose subject was changed', { request: base64(spoilt(pems.node, 30)) }, ['spec.request Invalid']],
  ['no usages', { usages: [] }, ['spec.usages Required']],
  ['an unknown usage', { usages: ['client auth', 'fun'] }, ['spec.usages[1] NotSupported']],
  ['a usage twice', { usages: ['client auth', 'client auth'] }, ['spec.usages[1] Duplicate']],
  ['no signer', { signerName: '' }, ['spec.signerName Required']],
  ['a signer without a path', { signerName: 'example.com' }, ['spec.signerName Invalid']],
  ['a signer of one label', { signerName: 'example/a' }, ['spec.signerName Invalid']],
  ['a signer with two paths', { signerName: 'example.com/a/b' }, ['spec.signerName Invalid']],
  ['a signer with capitals', { signerName: 'example.com/A' }, ['spec.signerName Invalid']],
  ['the signer of old', { signerName: 'kubernetes.io/legacy-unknown' }, ['spec.signerName Invalid']],
  ['ten minutes', { expirationSeconds: 600 }, []],
  ['less than ten minutes', { expirationSeconds: 599 }, ['spec.expirationSeconds Invalid']],
];

for (const [title, spec, causes] of specs) {
  test(`a certificate signing request with ${title}`, (t) => {
    t.deepEqual(create(CertificateSigningRequest, manifest(spec)).causes, causes);
  });
}

test('a certificate request is parsed into its subject, names and public key', (t) => {
  const node = readCertificateRequest(pems.node);
  t.deepEqual(node.subject, { commonName: 'system:node:n1', organizations: ['system:nodes'], others: [] });
  t.deepEqual(node.names, { dns: [], ips: [], emails: [], uris: [], others: 0 });
  t.deepEqual(readCertificateRequest(pems.serving).names, {
    dns: ['n1', 'n1.example.com'],
    ips: ['192.0.2.1', '2001:db8:0:0:0:0:0:1'],
    emails: ['a@example.com'],
    uris: ['https://example.com/'],
    others: 0,
  });
  t.deepEqual(readCertificateRequest(pems.person).subject, {
    commonName: 'jane',
    organizations: ['team a', 'tëam b'],
    others: ['2.5.4.6', '2.5.4.11'],
  });
});

test('a certificate request with any changed octet, or truncated anywhere, is rejected', (t) => {
  const der = Buffer.from(pems.serving.replace(/-----[^-]+-----/g, ''), 'base64');
  for (let at = 0; at < der.length; at += 1)
    t.throws(() => readCertificateRequest(spoilt(pems.serving, at)), { name: 'DerError' });
  for (let end = 0; end < der.length; end += 1) {
    const cut = `-----BEGIN CERTIFICATE REQUEST-----\n${der.subarray(0, end).toString('base64')}\n-----END CERTIFICATE REQUEST-----`;
    t.throws(() => readCertificateRequest(cut), { name: 'DerError' });
  }
});

test('the requesting user is the authenticated user, whatever the body contains', (t) => {
  const user: UserInfo = { name: 'jane', uid: 'u1', groups: ['a', 'b'], extra: { k: ['v'] } };
  const { object } = create(
    CertificateSigningRequest,
    manifest({ username: 'admin', groups: ['system:masters'], uid: 'x' }),
  );
  t.is(object.spec.username, 'system:apiserver');
  CertificateSigningRequest.strategy.prepareForCreate?.(object, contextOf(user));
  t.deepEqual(object.spec, { ...sound, username: 'jane', uid: 'u1', groups: ['a', 'b'], extra: { k: ['v'] } });
});

test('the spec cannot be changed, and a status in the body of a create is dropped', (t) => {
  const born = create(CertificateSigningRequest, { ...manifest({}), status: { conditions: [condition('Approved')] } });
  t.is(born.object.status, undefined);
  const written = update(CertificateSigningRequest, born.object, (request) => {
    request.spec.usages = ['any'];
    request.spec.username = 'admin';
  });
  t.deepEqual(written.object.spec, born.object.spec);
});

test('a status write can set the certificate or Failed, but cannot change approval or denial', (t) => {
  const approved = stored({ conditions: [condition('Approved')] });
  const certificate = base64(pems.cert);
  const write = (old: CertificateSigningRequest, status: NonNullable<CertificateSigningRequest['status']>) =>
    updateStatus(CertificateSigningRequest, old, (request) => {
      request.status = status;
    }).causes;
  t.deepEqual(write(approved, { ...approved.status, certificate }), []);
  t.deepEqual(write(approved, { conditions: [condition('Approved'), condition('Failed')] }), []);
  t.deepEqual(write(stored(), { conditions: [condition('Approved')] }), ['status.conditions Forbidden']);
  t.deepEqual(write(approved, { conditions: [] }), ['status.conditions Forbidden']);
  const kept = updateStatus(CertificateSigningRequest, approved, (request) => {
    request.status = { conditions: [{ ...condition('Approved'), reason: 'Other' }] };
  });
  t.is(kept.object.status?.conditions?.[0]?.reason, 'Test');
  t.deepEqual(write(stored({ certificate }), { certificate: base64(`${pems.cert}${pems.cert}`) }), [
    'status.certificate Forbidden',
  ]);
  t.deepEqual(write(stored(), { certificate: base64(pems.node) }), ['status.certificate Invalid']);
  t.deepEqual(write(stored(), { certificate: base64('x') }), ['status.certificate Invalid']);
  t.deepEqual(write(stored(), { conditions: [condition('Failed', 'False')] }), [
    'status.conditions[0].status NotSupported',
  ]);
  t.deepEqual(write(stored(), { conditions: [condition('Own', 'False'), condition('Own')] }), [
    'status.conditions[1].type Duplicate',
  ]);
});

function approve(old: CertificateSigningRequest, body: CertificateSigningRequest): CertificateSigningRequest {
  const [approval] = CertificateSigningRequest.subresources.filter(({ name }) => name === 'approval');
  if (approval?.type !== 'replace') throw new Error('no approval');
  const next = structuredClone(old);
  const context: StrategyContext = contextOf({ name: 'jane', groups: [] });
  approval.apply(next, body, context);
  return next;
}

test('an approval changes only conditions and metadata, and sets the times of the condition', (t) => {
  const old = stored();
  const body = {
    ...old,
    metadata: { ...old.metadata, name: 'other', annotations: { note: 'checked' } },
    spec: { ...old.spec, usages: ['any'] },
    status: { conditions: [condition('Approved')], certificate: 'eA==' },
  };
  const next = approve(old, body);
  const time = now.toISOString().replace('.000', '');
  t.deepEqual(next.spec, old.spec);
  t.deepEqual(next.metadata, { ...old.metadata, annotations: { note: 'checked' } });
  t.deepEqual(approve(next, { ...next, metadata: { ...old.metadata } }).metadata, old.metadata);
  t.deepEqual(next.status, {
    conditions: [{ ...condition('Approved'), lastUpdateTime: time, lastTransitionTime: time }],
  });
});

test('approval and denial are mutually exclusive and final', (t) => {
  const denied = stored({ conditions: [condition('Denied')] });
  const both = approve(denied, stored({ conditions: [condition('Denied'), condition('Approved')] }));
  t.regex(CertificateSigningRequest.strategy.validate?.(both)[0]?.message ?? '', /mutually exclusive/);
  const error = t.throws(() => approve(denied, stored({ conditions: [condition('Approved')] })));
  t.true(isStatusError(error, 'Invalid'));
});

test('the table shows requestor, signer, requested duration and condition', (t) => {
  const cell = (changes: Partial<CertificateSigningRequest['status']>) =>
    row(CertificateSigningRequest, stored(changes))['Condition'];
  t.is(cell({}), 'Pending');
  t.is(cell({ conditions: [condition('Denied')] }), 'Denied');
  t.is(cell({ conditions: [condition('Approved')], certificate: 'eA==' }), 'Approved,Issued');
  t.is(cell({ conditions: [condition('Approved'), condition('Failed')] }), 'Approved,Failed');
  const { object } = create(CertificateSigningRequest, manifest({ expirationSeconds: 86_400 }));
  t.like(row(CertificateSigningRequest, object), {
    SignerName: 'example.com/signer',
    Requestor: 'system:apiserver',
    RequestedDuration: '24h',
  });
});
