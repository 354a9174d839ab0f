import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { createSelfSigned, type KeyPair } from '@keelson/certificates';
import { FakeClock, type Logger, silentLogger, systemClock } from '@keelson/core/runtime';
import { Secret } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { main } from '../../src/cli/main.ts';
import { startServer } from '../../src/cli/serve.ts';
import { loadOptions } from '../../src/config/load-options.ts';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import { createPromMetrics } from '../../src/observe/prom-metrics.ts';
import { createAuthority } from '../../src/tls/authority.ts';
import { type Credentials, loadCredentials, readServingCertificate } from '../../src/tls/credentials.ts';
import { CredentialsRenewal, credentialsPollMs } from '../../src/tls/renew-credentials.ts';

const dayMs = 86_400_000;

async function folderOf(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-certificates-'));
  t.teardown(() => rm(folder, { recursive: true }));
  return folder;
}

interface Call {
  readonly ca: string;
  readonly pair?: KeyPair;
  readonly token?: string;
  readonly agent?: Agent;
}

/** The serial number of the certificate for a client that sends this server name, or none. */
function presented(port: number, ca: string, servername: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const address = { host: '127.0.0.1', port, servername, ca };
    const socket = connect({ ...address, checkServerIdentity: () => undefined }, () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

/** The status, and the serial number of the server's certificate. */
function get(
  url: string,
  { ca, pair, token, agent }: Call,
): Promise<{ status: number; serial: string; reused: boolean }> {
  const certificate = pair && { cert: pair.certificate, key: pair.key };
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { agent: agent ?? false, ca, headers, ...certificate }, (incoming) => {
      const serial = (incoming.socket as TLSSocket).getPeerCertificate().serialNumber;
      const answer = { status: incoming.statusCode ?? 0, serial, reused: outgoing.reusedSocket };
      incoming.resume().on('end', () => resolve(answer));
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
}

const serialOf = (pem: string): string => new X509Certificate(pem).serialNumber;

test('certificate, key and authorities are replaced for new connections, and open connections continue', async (t) => {
  const data = await folderOf(t);
  const first = await loadCredentials(data, '127.0.0.1', systemClock.now());
  const plane = await createControlPlane({ controllers: false });
  t.teardown(() => plane.close());
  const server = await plane.listen({ credentials: first });
  const url = `${server.url}/api`;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  const open = { ca: first.authority, pair: first.admin, agent };
  t.like(await get(url, open), { status: 200, serial: serialOf(first.server.certificate) });

  const next = await createAuthority(systemClock.now());
  await writeFile(join(data, 'ca.key'), next.key);
  await writeFile(join(data, 'ca.crt'), `${next.certificate}\n${first.authority}`);
  const second = await loadCredentials(data, '127.0.0.1', systemClock.now());
  server.setCredentials(second);
  t.like(await get(url, open), { status: 200, serial: serialOf(first.server.certificate), reused: true });
  const fresh = { ca: next.certificate, pair: second.admin };
  t.like(await get(url, fresh), { status: 200, serial: serialOf(second.server.certificate) });
  t.is((await get(url, { ...fresh, pair: first.admin })).status, 200, 'the former authority is still in the file');
  server.setCredentials({ ...second, authority: next.certificate });
  t.is((await get(url, { ...fresh, pair: first.admin })).status, 401, 'and now it is not');
  t.is((await get(url, open)).status, 401, 'on open connections too');
  t.is((await get(url, fresh)).status, 200);
});

/** An operator's certificate for `api.example.com`. */
async function operators(lifeMs: number, now: number): Promise<KeyPair> {
  const validity = { notBefore: new Date(now - dayMs), notAfter: new Date(now + lifeMs) };
  return createSelfSigned({
    ...validity,
    subject: { commonName: 'api.example.com' },
    usages: ['digital signature', 'server auth'],
    names: { dns: ['api.example.com'], ips: [] },
  });
}

test('--tls-cert-file: clients that use another name get the certificate of the operator, all others that of the server', async (t) => {
  const data = await folderOf(t);
  const [certificate, key] = [join(data, 'own.crt'), join(data, 'own.key')];
  const first = await operators(100 * dayMs, systemClock.now());
  const store = async (pair: KeyPair) => {
    await writeFile(certificate, pair.certificate);
    await writeFile(key, pair.key, { mode: 0o600 });
  };
  await store(first);
  const words = ['serve', '--listen', '127.0.0.1:0', '--data', data, '--storage', 'memory:', '--log-level', 'error'];
  const files = ['--tls-cert-file', certificate, '--tls-private-key-file', key];
  const running = await startServer(await loadOptions([...words, ...files].slice(1), {}), false);
  t.teardown(() => running.stop());
  const port = Number(new URL(running.url).port);
  const authority = await readFile(running.authorityFile, 'utf8');
  const own = serialOf(await readFile(join(data, 'server.crt'), 'utf8'));
  for (const name of ['', 'localhost', 'kubernetes.default', 'kubernetes.default.svc.cluster.local'])
    t.is(await presented(port, authority, name), own, `"${name}"`);
  for (const name of ['api.example.com', 'other.example.com'])
    t.is(await presented(port, first.certificate, name), serialOf(first.certificate), name);
  t.like(await get(running.url, { ca: authority }), { status: 401 });

  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [files.slice(0, 2), /^--tls-cert-file and --tls-private-key-file require each other$/],
    [[...files, '--insecure'], /^--insecure and --tls-cert-file exclude each other/],
  ];
  for (const [given, message] of cases)
    await t.throwsAsync(loadOptions([...words, ...given].slice(1), {}), { message });
  await t.throwsAsync(readServingCertificate(join(data, 'none'), key), {
    message: /^--tls-cert-file .* cannot be read/,
  });
  await t.throwsAsync(readServingCertificate(join(data, 'server.crt'), key), { message: /do not belong together/ });
});

test('suites with CBC, without forward secrecy, and versions before TLS 1.2 are not negotiated', async (t) => {
  const credentials = await loadCredentials(await folderOf(t), '127.0.0.1', systemClock.now());
  const plane = await createControlPlane({ controllers: false });
  t.teardown(() => plane.close());
  const { port } = await plane.listen({ credentials });
  const negotiated = (options: ConnectionOptions) =>
    new Promise<string>((resolve) => {
      const socket = connect({ host: '127.0.0.1', port, ca: credentials.authority, ...options }, () => {
        resolve(`${socket.getProtocol()} ${socket.getCipher().name}`);
        socket.destroy();
      });
      socket.on('error', () => resolve('refused'));
    });
  const old = { maxVersion: 'TLSv1.2' } as const;
  t.is(await negotiated({}), 'TLSv1.3 TLS_AES_128_GCM_SHA256');
  for (const ciphers of [
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305',
  ])
    t.is(await negotiated({ ...old, ciphers }), `TLSv1.2 ${ciphers}`);
  for (const ciphers of [
    'ECDHE-ECDSA-AES128-SHA',
    'ECDHE-ECDSA-AES256-SHA384',
    'AES128-GCM-SHA256',
    'AES256-SHA',
    'ECDHE-ECDSA-AES128-SHA256',
  ])
    t.is(await negotiated({ ...old, ciphers }), 'refused', ciphers);
  const weak = { ciphers: 'DEFAULT@SECLEVEL=0', minVersion: 'TLSv1', maxVersion: 'TLSv1.1' } as const;
  t.is(await negotiated(weak), 'refused');
});

/** Credentials of a directory that are renewed with a clock of the test. */
async function renewed(t: ExecutionContext) {
  const data = await folderOf(t);
  const clock = new FakeClock(Date.UTC(2026, 5, 1));
  const lines: string[] = [];
  const log = (message: string, fields?: object) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const logger: Logger = { ...silentLogger, info: log, warn: log, error: log };
  const metrics = createPromMetrics();
  const files = { certificate: join(data, 'own.crt.pem'), key: join(data, 'own.key.pem'), loads: [] as number[] };
  const load = async (): Promise<Credentials> => {
    const credentials = await loadCredentials(data, '127.0.0.1', clock.now());
    files.loads.push(clock.now());
    if (!existsSync(files.certificate) || !existsSync(files.key)) return credentials;
    return { ...credentials, named: await readServingCertificate(files.certificate, files.key) };
  };
  const changes: Credentials[] = [];
  const onChange = (next: Credentials) => void changes.push(next);
  const renewal = new CredentialsRenewal({ current: await load(), load, onChange, clock, logger, metrics });
  t.teardown(() => renewal.stop());
  /** Lets the files be read until the condition holds. */
  const polled = (condition: () => boolean) =>
    until(() => {
      if (condition()) return true;
      clock.advance(credentialsPollMs);
      return false;
    });
  return { data, clock, lines, metrics, renewal, changes, polled, files };
}

test('a certificate that the server does not renew is reported daily from 30 days before its end, and replaced by its file', async (t) => {
  const { clock, lines, renewal, changes, polled, files } = await renewed(t);
  const store = async (pair: KeyPair) => {
    await writeFile(files.certificate, pair.certificate);
    await writeFile(files.key, pair.key);
  };
  await store(await operators(31 * dayMs, clock.now()));
  await polled(() => changes.length > 0);
  const warnings = () => lines.filter((line) => line.startsWith('a certificate of the server expires soon'));
  const polls = async (ms: number) => {
    const before = warnings().length;
    clock.jump(ms);
    const { length } = files.loads;
    await polled(() => files.loads.length > length + 1);
    return warnings().length - before;
  };
  t.is(await polls(dayMs / 2), 0, 'more than 30 days');
  t.is(await polls(dayMs), 1);
  t.is(await polls(dayMs / 2), 0, 'once a day');
  t.is(await polls(dayMs / 2), 1);
  const until = new X509Certificate(renewal.current.named?.certificate ?? '').validTo;
  t.is(warnings()[0]?.slice(41), JSON.stringify({ certificate: 'named', until: new Date(until).toISOString() }));
  await writeFile(files.certificate, (await operators(90 * dayMs, clock.now())).certificate);
  await polled(() => lines.some((line) => line.includes('cannot be renewed')));
  t.is(changes.length, 1, 'a certificate without its key is not used');
  const next = await operators(90 * dayMs, clock.now());
  await store(next);
  await polled(() => changes.length > 1);
  t.is(renewal.current.named?.certificate, next.certificate);
  t.is(await polls(2 * dayMs), 0);
});

test('a serving certificate is renewed before it expires; its end is a metric', async (t) => {
  const { clock, renewal, changes, metrics, polled } = await renewed(t);
  const before = renewal.current.server.certificate;
  const end = (pem: string) => Date.parse(new X509Certificate(pem).validTo);
  const shown = async () =>
    Number(/expiration_timestamp_seconds\{certificate="server"\} (\S+)/.exec(await metrics.text())?.[1]);
  t.is(await shown(), end(before) / 1000);
  clock.jump(336 * dayMs);
  await polled(() => changes.length > 0);
  const after = renewal.current.server.certificate;
  t.true(end(after) - clock.now() > 360 * dayMs);
  t.true(new X509Certificate(after).verify(new X509Certificate(renewal.current.authority).publicKey));
  await until(async () => (await shown()) === end(after) / 1000);
});

test('an authority that expires is followed by a new one, and remains accepted; half replaced files change nothing', async (t) => {
  const { data, clock, lines, renewal, changes, polled } = await renewed(t);
  const first = renewal.current;
  await writeFile(join(data, 'ca.key'), (await createAuthority(clock.now())).key);
  await polled(() => lines.some((line) => line.includes('cannot be renewed')));
  t.deepEqual([renewal.current, changes], [first, []]);
  await writeFile(join(data, 'ca.key'), first.authorityKey);
  clock.jump(3625 * dayMs);
  await polled(() => changes.length > 0);
  const { authority, authorityKey, server } = renewal.current;
  const [signing, former] = authority.match(/-----BEGIN.*?END CERTIFICATE-----/gs) ?? [];
  t.true(new X509Certificate(signing ?? '').checkPrivateKey(createPrivateKey(authorityKey)));
  t.is(serialOf(former ?? ''), serialOf(first.authority));
  t.true(new X509Certificate(server.certificate).verify(new X509Certificate(signing ?? '').publicKey));
  t.is(lines.filter((line) => line.includes('cannot be renewed')).length, 1);
});

test('keelson token and keelson cert: a token joins as its user until it is deleted or has expired', async (t) => {
  const data = await folderOf(t);
  const words = ['--data', data, '--storage=memory:', '--listen=127.0.0.1:0', '--log-level=silent'];
  const server = await startServer(await loadOptions(words, {}), false);
  t.teardown(() => server.stop());
  const keelson = async (...args: string[]) => {
    let [out, err] = ['', ''];
    const stdout = (text: string) => {
      out += text;
    };
    const stderr = (text: string) => {
      err += text;
    };
    const code = await main([...args, '--data', data], { env: {}, stdout, stderr, terminated: new Promise(() => {}) });
    return { code, out, err };
  };
  const created = await keelson('token', 'create', '--ttl=1h', '--description=rack 7');
  const [token = ''] = created.out.split('\n');
  t.regex(token, /^[a-z0-9]{6}\.[a-z0-9]{16}$/);
  const id = token.slice(0, 6);
  t.true(created.out.includes(`keelson-agent --bootstrap-clusterconfig=./bootstrap-${id}.kubeconfig`));
  const config = JSON.parse(await readFile(join(data, `bootstrap-${id}.kubeconfig`), 'utf8'));
  t.is(config.users[0].user.token, token);
  t.regex((await keelson('token', 'list')).out, new RegExp(`^ID .*\n${id}  \\d{4}-.*Z  rack 7\n$`));
  const ca = await readFile(server.authorityFile, 'utf8');
  const requests = `${server.url}/apis/certificates.k8s.io/v1/certificatesigningrequests`;
  t.is((await get(requests, { ca, token })).status, 200, 'joining nodes read their requests');
  t.is((await get(`${server.url}/api/v1/secrets`, { ca, token })).status, 403);
  t.is((await get(requests, { ca, token: `${id}.0000000000000000` })).status, 401);
  t.deepEqual(await keelson('token', 'delete', id), { code: 0, out: `deleted ${id}\n`, err: '' });
  t.is((await get(requests, { ca, token })).status, 401, 'at once');

  const list = (await keelson('cert', 'list')).out.trim().split('\n');
  t.regex(list[0] ?? '', /^NAME\tSUBJECT\tNAMES\tISSUER\tEXPIRES\tUSED FOR$/);
  t.regex(list[2] ?? '', /^server\tCN=keelson-server\t.*127\.0\.0\.1.*\tCN=keelson-ca\t.*days left\)\tserving$/);
  t.deepEqual(
    list.slice(1).map((line) => line.split('\t')[0]),
    ['ca', 'server', 'admin', 'agent-client', 'bootstrap', 'front-proxy-ca', 'front-proxy-client'],
  );
  for (const [args, message] of [
    [['token', 'creat'], /use token create, list or delete/],
    [['token', 'delete', '../x'], /requires the ID of a token/],
    [['token', 'delete', 'aaaaaa'], /there is no token aaaaaa/],
    [['token', 'create', '--ttl=soon'], /--ttl must be a duration/],
    [['cert'], /use cert list/],
  ] as const) {
    const { code, err } = await keelson(...args);
    t.is(code, 2, args.join(' '));
    t.regex(err, message);
  }
});

test('bootstrap tokens: wrong usage, groups, type and expired ones are 401; expired ones are deleted', async (t) => {
  const clock = new FakeClock(Date.now());
  const credentials = await loadCredentials(await folderOf(t), '127.0.0.1', clock.now());
  const plane = await createControlPlane({ clock });
  t.teardown(() => plane.close());
  const { url } = await plane.listen({ credentials });
  const secrets = plane.client(Secret).namespace('kube-system');
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const add = async (id: string, more: Record<string, string> = {}, type = 'bootstrap.kubernetes.io/token') => {
    const fields = {
      'token-id': id,
      'token-secret': '0123456789abcdef',
      'usage-bootstrap-authentication': 'true',
      ...more,
    };
    const values = Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, base64(value)]));
    await secrets.create({ metadata: { name: `bootstrap-token-${id}` }, type, data: values } as unknown as Secret);
  };
  const at = (ms: number) => new Date(clock.now() + ms).toISOString().replace(/\.\d+Z/, 'Z');
  await add('groups', { 'auth-extra-groups': 'system:bootstrappers:rack:seven', expiration: at(3_600_000) });
  await add('signer', { 'usage-bootstrap-authentication': 'false' });
  await add('master', { 'auth-extra-groups': 'system:masters' });
  await add('others', { 'token-id': 'groups' });
  await add('opaque', {}, 'Opaque');
  await add('broken', { expiration: 'tomorrow' });
  const status = async (id: string) =>
    (await get(`${url}/api`, { ca: credentials.authority, token: `${id}.0123456789abcdef` })).status;
  t.is(await status('groups'), 200);
  for (const id of ['signer', 'master', 'others', 'opaque', 'broken', 'absent']) t.is(await status(id), 401, id);
  clock.advance(3_600_000);
  t.is(await status('groups'), 401);
  await until(async () => {
    const { items } = await secrets.list();
    const names = items.map(({ metadata }) => metadata?.name);
    return !names.includes('bootstrap-token-groups') && names.includes('bootstrap-token-signer');
  });
});
