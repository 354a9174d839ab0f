import { X509Certificate } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type LogFields, silentLogger } from '@keelson/core/runtime';
import anyTest, { type TestFn } from 'ava';
import { loadCredentials } from '../../src/tls/credentials.ts';
import { kubeconfigText, writeKubeconfig } from '../../src/tls/kubeconfig.ts';

const test = anyTest as TestFn<{ data: string }>;
const now = Date.UTC(2026, 5, 1);
const dayMs = 86_400_000;

test.beforeEach(async (t) => {
  t.context.data = join(await mkdtemp(join(tmpdir(), 'keelson-tls-')), 'data');
});
test.afterEach.always((t) => rm(dirname(t.context.data), { recursive: true, force: true }));

test('server and admin certificates are signed by the authority and contain their subjects', async (t) => {
  const { authority, server, admin } = await loadCredentials(t.context.data, '127.0.0.1', now);
  const root = new X509Certificate(authority);
  const [serverCertificate, adminCertificate] = [
    new X509Certificate(server.certificate),
    new X509Certificate(admin.certificate),
  ];
  t.true(root.ca);
  t.true(serverCertificate.verify(root.publicKey));
  t.is(serverCertificate.checkHost('localhost'), 'localhost');
  t.is(serverCertificate.checkIP('127.0.0.1'), '127.0.0.1');
  t.true(adminCertificate.verify(root.publicKey));
  t.regex(adminCertificate.subject, /O=system:masters/);
  t.regex(adminCertificate.subject, /CN=kubernetes-admin/);
});

test('the server authenticates to agents with a client certificate that is not valid for servers', async (t) => {
  const { authority, agentClient } = await loadCredentials(t.context.data, '127.0.0.1', now);
  const certificate = new X509Certificate(agentClient.certificate);
  t.true(certificate.verify(new X509Certificate(authority).publicKey));
  t.regex(certificate.subject, /CN=keelson-server/);
  t.deepEqual(certificate.keyUsage, ['1.3.6.1.5.5.7.3.2'], 'for clients alone');
});

test('every key file is readable by its owner only', async (t) => {
  const { data } = t.context;
  const credentials = await loadCredentials(data, '127.0.0.1', now);
  await writeKubeconfig(data, { url: 'https://127.0.0.1:1', credentials });
  const keys = ['ca.key', 'server.key', 'admin.key', 'agent-client.key', 'bootstrap.key'];
  for (const name of [...keys, 'kubeconfig', 'bootstrap.kubeconfig']) {
    t.is((await stat(join(data, name))).mode & 0o777, 0o600, name);
  }
  t.is((await stat(data)).mode & 0o777, 0o700);
});

test('wider modes of the data directory and of the files in it are tightened and logged', async (t) => {
  const { data } = t.context;
  const credentials = await loadCredentials(data, '127.0.0.1', now);
  await writeKubeconfig(data, { url: 'https://127.0.0.1:1', credentials });
  const names = await readdir(data);
  await chmod(data, 0o755);
  for (const name of names) await chmod(join(data, name), 0o644);
  const tightened: unknown[] = [];
  const logger = { ...silentLogger, warn: (_message: string, fields?: LogFields) => tightened.push(fields?.['path']) };
  await loadCredentials(data, '127.0.0.1', now, logger);
  await writeKubeconfig(data, { url: 'https://127.0.0.1:1', credentials }, logger);
  t.is((await stat(data)).mode & 0o777, 0o700);
  for (const name of names) t.is((await stat(join(data, name))).mode & 0o777, 0o600, name);
  t.deepEqual(tightened.sort(), [data, ...names.map((name) => join(data, name))].sort());
});

test('a directory that all users can write is rejected as the data directory', async (t) => {
  const { data } = t.context;
  await mkdir(data);
  await chmod(data, 0o1777);
  await t.throwsAsync(loadCredentials(data, '127.0.0.1', now), {
    message: /is shared by all users .*; use a directory below it/,
  });
  t.is((await stat(data)).mode & 0o7777, 0o1777);
});

test('a second start uses the same credentials', async (t) => {
  const first = await loadCredentials(t.context.data, '127.0.0.1', now);
  t.deepEqual(await loadCredentials(t.context.data, '127.0.0.1', now + dayMs), first);
});

test('a certificate near its end or for another address is issued again by the same authority', async (t) => {
  const first = await loadCredentials(t.context.data, '127.0.0.1', now);
  const later = await loadCredentials(t.context.data, '127.0.0.1', now + 340 * dayMs);
  t.is(later.authority, first.authority);
  t.not(later.server.certificate, first.server.certificate);
  const moved = await loadCredentials(t.context.data, '10.1.2.3', now + 340 * dayMs);
  t.is(new X509Certificate(moved.server.certificate).checkIP('10.1.2.3'), '10.1.2.3');
  t.is(moved.admin.certificate, later.admin.certificate);
});

test('a kubeconfig without credentials points to plain HTTP and holds no secrets', (t) => {
  const config = JSON.parse(kubeconfigText({ url: 'http://127.0.0.1:1', credentials: undefined })) as {
    clusters: { cluster: Record<string, unknown> }[];
    users: { user: Record<string, string> }[];
  };
  t.deepEqual(config.clusters[0]?.cluster, {
    server: 'http://127.0.0.1:1',
    'insecure-skip-tls-verify': true,
  });
  t.deepEqual(config.users[0]?.user, {});
});

test('the bootstrap config is valid for two weeks and renewed by a start in the second week', async (t) => {
  const { data } = t.context;
  const credentials = await loadCredentials(data, '127.0.0.1', now);
  await writeKubeconfig(data, { url: 'https://127.0.0.1:1', credentials });
  const certificate = new X509Certificate(credentials.bootstrap.certificate);
  t.true(certificate.verify(new X509Certificate(credentials.authority).publicKey));
  t.regex(certificate.subject, /O=system:bootstrappers/);
  t.is(Date.parse(certificate.validTo), now + 14 * dayMs);
  const config = JSON.parse(await readFile(join(data, 'bootstrap.kubeconfig'), 'utf8'));
  t.is(
    Buffer.from(config.users[0].user['client-certificate-data'], 'base64').toString(),
    credentials.bootstrap.certificate,
  );
  t.deepEqual((await loadCredentials(data, '127.0.0.1', now + 6 * dayMs)).bootstrap, credentials.bootstrap);
  t.notDeepEqual((await loadCredentials(data, '127.0.0.1', now + 8 * dayMs)).bootstrap, credentials.bootstrap);
});

test('without credentials no bootstrap config is written', async (t) => {
  const { data } = t.context;
  await writeKubeconfig(data, { url: 'http://127.0.0.1:1', credentials: undefined });
  await t.throwsAsync(stat(join(data, 'bootstrap.kubeconfig')), { code: 'ENOENT' });
});
