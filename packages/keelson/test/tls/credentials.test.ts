import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import anyTest, { type TestFn } from 'ava';
import { loadCredentials } from '../../src/tls/credentials.ts';
import { kubeconfigText, writeKubeconfig } from '../../src/tls/kubeconfig.ts';

const test = anyTest as TestFn<{ data: string }>;
const now = Date.UTC(2026, 5, 1);
const dayMs = 86_400_000;

test.beforeEach(async (t) => {
  t.context.data = join(await mkdtemp(join(tmpdir(), 'keelson-tls-')), 'data');
});
test.afterEach.always((t) => rm(t.context.data, { recursive: true, force: true }));

test('server and admin certificates are signed by the authority and say who they are', async (t) => {
  const { authority, server, admin } = await loadCredentials(t.context.data, '127.0.0.1', now);
  const root = new X509Certificate(authority);
  const [serverCertificate, adminCertificate] = [new X509Certificate(server.certificate), new X509Certificate(admin.certificate)];
  t.true(root.ca);
  t.true(serverCertificate.verify(root.publicKey));
  t.is(serverCertificate.checkHost('localhost'), 'localhost');
  t.is(serverCertificate.checkIP('127.0.0.1'), '127.0.0.1');
  t.true(adminCertificate.verify(root.publicKey));
  t.regex(adminCertificate.subject, /O=system:masters/);
  t.regex(adminCertificate.subject, /CN=kubernetes-admin/);
});

test('every key file is readable by its owner only', async (t) => {
  const { data } = t.context;
  const credentials = await loadCredentials(data, '127.0.0.1', now);
  await writeKubeconfig(data, { url: 'https://127.0.0.1:1', credentials });
  for (const name of ['ca.key', 'server.key', 'admin.key', 'kubeconfig']) {
    t.is((await stat(join(data, name))).mode & 0o777, 0o600, name);
  }
  t.is((await stat(data)).mode & 0o777, 0o700);
});

test('a second start uses the same credentials', async (t) => {
  const first = await loadCredentials(t.context.data, '127.0.0.1', now);
  t.deepEqual(await loadCredentials(t.context.data, '127.0.0.1', now + dayMs), first);
});

test('a certificate near its end or for another address is made anew by the same authority', async (t) => {
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
