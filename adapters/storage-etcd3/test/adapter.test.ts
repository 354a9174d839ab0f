import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ClockToken, FakeClock, LoggerToken, MetricsToken, noMetrics, silentLogger } from '@keelson/core/runtime';
import { StoreToken } from '@keelson/core/storage-adapter';
import test from 'ava';
import etcd, { Etcd3Store } from '../src/index.ts';
import { EtcdServer, findEtcd } from './support/etcd-server.ts';
import { Follower, put } from './support/following.ts';

test('URLs are parsed into options, and invalid ones are rejected with the reason', (t) => {
  const read = (url: string, scheme = 'etcd') => etcd.parseUrl(url, scheme);
  t.deepEqual(read('//127.0.0.1:2379'), { hosts: ['127.0.0.1:2379'] });
  t.deepEqual(read('//127.0.0.1:2379/'), { hosts: ['127.0.0.1:2379'] });
  t.deepEqual(read('//a:1,b:2,[::1]:3/teams/blue'), { hosts: ['a:1', 'b:2', '[::1]:3'], prefix: '/teams/blue/' });
  t.deepEqual(read('//a'), { hosts: ['a:2379'] });
  t.deepEqual(read('//us%40er:p%2F%3A@a:1/x/'), { hosts: ['a:1'], prefix: '/x/', username: 'us@er', password: 'p/:' });
  t.deepEqual(read('//a:1', 'etcds'), { hosts: ['a:1'], tls: {} });
  t.deepEqual(read('//a:1/x?ca=/ca.pem&cert=c&key=k&minAgeMs=1000&minChanges=5&compaction=never', 'etcds'), {
    hosts: ['a:1'],
    prefix: '/x/',
    tls: { caFile: '/ca.pem', certFile: 'c', keyFile: 'k' },
    history: { minAgeMs: 1000, minChanges: 5 },
    compaction: 'never',
  });
  for (const [url, message] of [
    ['', /expected \/\/host:port/],
    ['a:1', /expected \/\/host:port/],
    ['//', /expected \/\/host:port/],
    ['//a:1,', /is not host:port/],
    ['//a:99999', /is not host:port/],
    ['//a:0', /is not host:port/],
    ['//a b:1', /is not host:port/],
    ['//user@a:1', /user:password/],
    ['//a:1/%zz', /percent-encoded/],
    ['//a:1?ca=x', /need etcds/],
    ['//a:1?color=red', /unknown parameter "color"/],
    ['//a:1?minAgeMs=-1', /whole number/],
    ['//a:1?compaction=sometimes', /auto or never/],
  ] as const) {
    t.throws(() => read(url), { message }, url);
  }
});

test('the adapter binds one store, and contradictory options are rejected', (t) => {
  const bound: { target: unknown; dependencies: unknown; make: () => unknown }[] = [];
  const load = (options: Parameters<typeof etcd.module>[0]) => {
    etcd.module(options)((target, dependencies, factory) => {
      bound.push({
        target,
        dependencies,
        make: () => factory(...([new FakeClock(), silentLogger, noMetrics] as never)),
      });
    });
    return bound.at(-1) as (typeof bound)[number];
  };
  const { target, dependencies, make } = load({ hosts: ['127.0.0.1:1'] });
  t.is(target, StoreToken);
  t.deepEqual(dependencies, [ClockToken, LoggerToken, MetricsToken]);
  t.true(make() instanceof Etcd3Store);
  t.throws(() => load({ hosts: ['a:1'], username: 'u' }).make(), { message: /belong together/ });
  t.throws(() => load({ hosts: [] }).make(), { message: /at least one endpoint/ });
  t.throws(() => load({ hosts: ['a:1'], prefix: 'x' }).make(), { message: /must begin and end with a slash/ });
  t.throws(() => load({ hosts: ['a:1'], tls: { caFile: '/does/not/exist' } }).make(), { message: /ENOENT/ });
  t.throws(() => new Etcd3Store({ endpoints: ['http://a:1', 'https://b:1'] }), {
    message: /all endpoints use TLS or none/,
  });
});

const program = 'openssl';

function hasOpenssl(): boolean {
  try {
    execFileSync(program, ['version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const binary = findEtcd();
const overTls = binary === undefined || !hasOpenssl() ? test.skip : test;

overTls('etcds: a connection requires the CA and a client certificate', async (t) => {
  t.timeout(60_000);
  const folder = mkdtempSync(join(tmpdir(), 'keelson-etcd-tls-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const openssl = (...args: string[]) => execFileSync(program, args, { cwd: folder, stdio: 'ignore' });
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl('req', '-x509', ...curve, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=test ca');
  openssl(
    'req',
    ...curve,
    '-keyout',
    'tls.key',
    '-out',
    'tls.csr',
    '-subj',
    '/CN=etcd',
    '-addext',
    'subjectAltName=IP:127.0.0.1',
  );
  openssl(
    'x509',
    '-req',
    '-in',
    'tls.csr',
    '-CA',
    'ca.pem',
    '-CAkey',
    'ca.key',
    '-CAcreateserial',
    '-out',
    'tls.pem',
    '-days',
    '2',
    '-copy_extensions',
    'copyall',
  );
  const at = (name: string) => join(folder, name);
  const server = await EtcdServer.startWithTls(binary as string, {
    cert: at('tls.pem'),
    key: at('tls.key'),
    ca: at('ca.pem'),
  });
  t.teardown(() => server.remove());
  const url = `//127.0.0.1:${server.tlsPort}/tls?ca=${at('ca.pem')}`;
  const { hosts, prefix = '', tls = {} } = etcd.parseUrl(`${url}&cert=${at('tls.pem')}&key=${at('tls.key')}`, 'etcds');
  const endpoints = hosts.map((host) => `https://${host}`);
  const store = new Etcd3Store({ endpoints, prefix, tls });
  t.teardown(() => store.close());
  await store.ready();
  const revision = await put(store, '/a', 'x');
  const follower = await Follower.open(store, revision);
  await follower.reach(await put(store, '/a', 'y', revision));
  t.is(follower.changes.length, 1);
  const stranger = new Etcd3Store({ endpoints, prefix, tls: { caFile: at('ca.pem') } });
  t.teardown(() => stranger.close());
  const write = stranger.write({ op: 'put', key: '/b', value: Buffer.from('x'), expect: 0 }, { timeoutMs: 1500 });
  await t.throwsAsync(write, { code: 'Unavailable' });
  t.is((await store.get('/b')).entry, undefined);
});
