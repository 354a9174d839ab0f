import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, readlink, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { joinCluster, noMounter, parseOptions, resolveConfig, runAgent } from '@keelson/agent';
import { createHttpClient, kubeconfigAccess, loadKubeconfig } from '@keelson/client';
import { isStatusError, StatusReason } from '@keelson/core';
import { FakeClock, silentLogger } from '@keelson/core/runtime';
import { CertificateSigningRequest, Node, Pod, SelfSubjectReview } from '@keelson/kinds';
import { createFakeRuntime, FakeWorld } from '@keelson/runtime-fake';
import { eventually } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';
import { createControlPlane, credentialsSigner, loadCredentials, writeKubeconfig } from 'keelson';
import { scratchDirectory } from '../../src/agent-node.ts';

/**
 * Short enough to be renewed before the clocks of the test and of TLS are five minutes apart, for which certificates
 * are dated back.
 */
const lifetimeMs = 400_000;

/** A plane that serves TLS, with certificates that are valid for minutes. */
async function securePlane(t: ExecutionContext) {
  // TLS uses the clock of the machine.
  const clock = new FakeClock(Date.now());
  const { dir, remove } = await scratchDirectory();
  t.teardown(remove);
  const data = join(dir, 'data');
  const credentials = await loadCredentials(data, '127.0.0.1', clock.now());
  const sign = await credentialsSigner(credentials, clock);
  const plane = await createControlPlane({
    clock,
    certificateSigner: (order) => sign({ ...order, lifetimeMs: Math.min(order.lifetimeMs, lifetimeMs) }),
  });
  t.teardown(() => plane.close());
  const { url } = await plane.listen({ credentials });
  await writeKubeconfig(data, { url, credentials });
  return { plane, clock, dir, credentials, bootstrap: join(data, 'bootstrap.kubeconfig') };
}

const clientOf = async (t: ExecutionContext, path: string) => {
  const { options } = await kubeconfigAccess(await loadKubeconfig({ path }));
  const client = createHttpClient(options);
  t.teardown(() => client.close());
  return client;
};

test('an agent joins with the bootstrap file: its node is Ready, its pods run, and its certificate is renewed', async (t) => {
  const { plane, clock, dir, bootstrap } = await securePlane(t);
  /** Advances the clock of all parts while a condition is awaited. */
  const goOn = <T>(probe: () => Promise<T | undefined | false>, stepMs = 200) =>
    eventually(async () => {
      clock.advance(stepMs);
      return probe();
    });
  const [rootDir, manifests] = [join(dir, 'agent'), join(dir, 'manifests')];
  await mkdir(rootDir);
  await mkdir(manifests);
  const fixed = { metadata: { name: 'fixed' }, spec: { containers: [{ name: 'main', image: 'app:1' }] } };
  await writeFile(join(manifests, 'fixed.json'), JSON.stringify({ apiVersion: 'v1', kind: 'Pod', ...fixed }));
  const clusterconfig = join(rootDir, 'clusterconfig');
  const words = [
    '--hostname-override=joined-1',
    `--root-dir=${rootDir}`,
    `--cert-dir=${join(rootDir, 'pki')}`,
    `--clusterconfig=${clusterconfig}`,
    `--bootstrap-clusterconfig=${bootstrap}`,
    '--rotate-certificates',
    `--pod-manifest-path=${manifests}`,
    '--resolv-conf=',
    '--enable-server=false',
    '--read-only-port=0',
    '--healthz-port=0',
    '--make-iptables-util-chains=false',
  ];
  const { config } = resolveConfig(parseOptions(words), { hostname: () => 'joined-1', fileExists: () => false });
  const logger = silentLogger;

  let joined = false;
  void joinCluster({ config, clock, logger, signal: new AbortController().signal }).then(() => {
    joined = true;
  });
  await goOn(async () => joined);
  const whoami = await (await clientOf(t, clusterconfig)).resource(SelfSubjectReview).create({ metadata: {} });
  t.is(whoami.status?.userInfo?.username, 'system:node:joined-1');
  t.deepEqual(whoami.status?.userInfo?.groups, ['system:nodes', 'system:authenticated']);

  const current = join(rootDir, 'pki', 'keelson-agent-client-current.pem');
  const [first, firstFile] = [new X509Certificate(await readFile(current)), await readlink(current)];
  const agent = await runAgent({
    config,
    effective: {},
    engine: createFakeRuntime(new FakeWorld()),
    logRoot: join(dir, 'log'),
    mounter: noMounter,
    random: () => 0,
    clock,
    logger,
  });
  t.teardown(() => agent.stop());
  await goOn(async () => {
    const { items } = await plane.client(Node).list();
    return items[0]?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
  });
  const pods = plane.client(Pod).namespace('default');
  const runs = (name: string) => goOn(async () => (await pods.get(name)).status?.phase === 'Running');
  const pod = (name: string): Pod => ({
    metadata: { name },
    spec: { nodeName: 'joined-1', containers: [{ name: 'main', image: 'app:1' }] },
  });
  await pods.create(pod('before'));
  await runs('before');
  await goOn(async () => (await pods.list()).items.some(({ metadata }) => metadata?.name === 'fixed-joined-1'));

  await goOn(async () => (await readlink(current)) !== firstFile, 1_000);
  const second = new X509Certificate(await readFile(current));
  t.not(second.serialNumber, first.serialNumber);
  t.true(Date.parse(second.validTo) > Date.parse(first.validTo));
  const requests = (await plane.client(CertificateSigningRequest).list()).items;
  t.deepEqual(requests.map(({ spec }) => spec.username).sort(), ['system:bootstrap:keelson', 'system:node:joined-1']);
  await pods.create(pod('after'));
  await runs('after');
  t.pass();
});

test('a joined agent gets a serving certificate for its addresses, by which the server verifies it', async (t) => {
  const { plane, clock, dir, credentials, bootstrap } = await securePlane(t);
  const goOn = <T>(probe: () => Promise<T | undefined | false>) =>
    eventually(async () => {
      clock.advance(200);
      return probe();
    });
  const rootDir = join(dir, 'agent');
  await mkdir(rootDir);
  const authorityFile = join(dir, 'ca.crt');
  await writeFile(authorityFile, credentials.authority);
  const words = [
    '--hostname-override=localhost',
    '--address=127.0.0.1',
    '--port=0',
    `--client-ca-file=${authorityFile}`,
    '--authorization-mode=Webhook',
    `--root-dir=${rootDir}`,
    `--cert-dir=${join(rootDir, 'pki')}`,
    `--clusterconfig=${join(rootDir, 'clusterconfig')}`,
    `--bootstrap-clusterconfig=${bootstrap}`,
    '--resolv-conf=',
    '--read-only-port=0',
    '--healthz-port=0',
    '--make-iptables-util-chains=false',
  ];
  const { config } = resolveConfig(parseOptions(words), { hostname: () => 'localhost', fileExists: () => false });
  let joined = false;
  void joinCluster({ config, clock, logger: silentLogger, signal: new AbortController().signal }).then(() => {
    joined = true;
  });
  await goOn(async () => joined);
  const agent = await runAgent({
    ...{ config, effective: {}, engine: createFakeRuntime(new FakeWorld()), logRoot: join(dir, 'log') },
    ...{ mounter: noMounter, random: () => 0, clock, logger: silentLogger },
  });
  t.teardown(() => agent.stop());
  /** Whether the agent's certificate is verified by the authority of the server, with the name of the node. */
  const verified = () =>
    new Promise<boolean>((resolve) => {
      const options = { host: '127.0.0.1', port: agent.servers.port ?? 0, servername: 'localhost' };
      const socket = connect({ ...options, ca: credentials.authority }, () => {
        resolve(true);
        socket.destroy();
      });
      socket.on('error', () => resolve(false));
    });
  t.false(await verified(), 'at first it is self-signed');
  await goOn(verified);
  const certificate = new X509Certificate(await readFile(join(rootDir, 'pki', 'keelson-agent.crt')));
  t.is(certificate.issuer, 'CN=keelson-ca');
  const [node] = (await plane.client(Node).list()).items;
  const ips = (node?.status?.addresses ?? []).filter(({ type }) => type === 'InternalIP');
  for (const { address } of ips) t.is(certificate.checkIP(address), address);
  const requests = (await plane.client(CertificateSigningRequest).list()).items;
  const serving = requests.filter(({ spec }) => spec.signerName === 'kubernetes.io/kubelet-serving');
  t.deepEqual(
    serving.map(({ spec }) => spec.username),
    ['system:node:localhost'],
  );

  const pod = { metadata: { name: 'p' }, spec: { nodeName: 'localhost', containers: [{ name: 'c', image: 'app:1' }] } };
  await plane
    .client(Pod)
    .namespace('default')
    .create(pod as Pod);
  /** The response of a server that verifies agents by these authorities. */
  const through = async (authority: string, path: string, upgrade?: Record<string, string>) => {
    const server = await plane.listen({ credentials, agents: { authority } });
    const { admin } = credentials;
    const headers = upgrade ?? {};
    const options = { ca: credentials.authority, cert: admin.certificate, key: admin.key, agent: false, headers };
    const sent = request(`${server.url}/api/v1/namespaces/default/pods/p/${path}`, options);
    sent.end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    const text = (await answer.toArray()).join('');
    await server.close();
    return { status: answer.statusCode, text };
  };
  const trusted = await through(credentials.authority, 'log');
  // The response of the agent about the container, which does not start or write on this runtime.
  t.regex(trusted.text, /container .*"c/);
  t.notRegex(trusted.text, /cannot be reached/);
  const { createAuthority, createRequest } = await import('@keelson/certificates');
  const now = Date.now();
  const validity = { notBefore: new Date(now - 60_000), notAfter: new Date(now + 3_600_000) };
  const other = (await createAuthority('keelson-ca', validity)).certificate;
  const upgrade = { Connection: 'Upgrade', Upgrade: 'SPDY/3.1', 'X-Stream-Protocol-Version': 'v4.channel.k8s.io' };
  for (const [path, headers] of [['log'], ['exec?command=id&stdout=1', upgrade]] as const) {
    const refused = await through(other, path, headers);
    t.is(refused.status, 503, path);
    t.regex(refused.text, /the agent of node \\?"localhost\\?" at [^ ]+ cannot be reached: [^"]*certificate/, path);
  }

  const own = await clientOf(t, join(rootDir, 'clusterconfig'));
  const subject = { organizations: ['system:nodes'], commonName: 'system:node:localhost' };
  const foreign = await createRequest(subject, { dns: ['kubernetes.default.svc'], ips: ['127.0.0.1'] });
  await own.resource(CertificateSigningRequest).create({
    metadata: { name: 'foreign' },
    spec: {
      request: Buffer.from(foreign.request).toString('base64'),
      signerName: 'kubernetes.io/kubelet-serving',
      usages: ['digital signature', 'server auth'],
    },
  } as CertificateSigningRequest);
  for (let i = 0; i < 100; i += 1) {
    clock.advance(200);
    await new Promise(setImmediate);
  }
  const { status } = await plane.client(CertificateSigningRequest).get('foreign');
  t.deepEqual(status?.conditions ?? [], [], 'names that the node has not reported are not approved');
});

test('the bootstrap file permits only reading its own identity and requesting a certificate, for two weeks', async (t) => {
  const { bootstrap, clock } = await securePlane(t);
  const client = await clientOf(t, bootstrap);
  const whoami = () => client.resource(SelfSubjectReview).create({ metadata: {} });
  t.is((await whoami()).status?.userInfo?.username, 'system:bootstrap:keelson');
  for (const call of [client.resource(Node).list(), client.resource(Pod).namespace('default').list()]) {
    t.true(isStatusError(await t.throwsAsync(call), StatusReason.Forbidden));
  }
  clock.advance(14 * 86_400_000);
  const error = await t.throwsAsync(whoami());
  t.true(isStatusError(error, StatusReason.Unauthorized), 'also on a connection that is open');
});
