import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { silentLogger } from '@keelson/core/runtime';
import { Node, Pod, ServiceAccount } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test from 'ava';
import { loadOptions } from '../../src/config/load-options.ts';
import { processControllers } from '../../src/control-plane/component-statuses.ts';
import { chooseControllers } from '../../src/control-plane/controller-choice.ts';
import { createPlane } from '../../src/control-plane/create-control-plane.ts';
import { createPromMetrics } from '../../src/observe/prom-metrics.ts';
import { issueCertificate } from '../../src/tls/authority.ts';
import { loadCredentials } from '../../src/tls/credentials.ts';
import { planeOptions } from '../../src/workers/server-context.ts';
import { shareOfWorker, WorkerThreads } from '../../src/workers/worker-threads.ts';

test('limits on a server are divided among its workers, upwards; others apply to each', async (t) => {
  const options = await loadOptions(['--workers', '3', '--storage', 'memory:'], {});
  const shared = shareOfWorker({
    ...options,
    connectionLimits: { connections: 100, connectionsPerAddress: 9, handshakeTimeoutMs: 7 } as never,
    flowControl: { requestsInFlight: 10, watches: 1000 },
  });
  t.like(shared.connectionLimits, { connections: 34, connectionsPerAddress: 3, handshakeTimeoutMs: 7 });
  t.like(shared.flowControl, { requestsInFlight: 4, watches: 334 });
  const [whole, part] = [shareOfWorker({ ...options, workers: 1 }), shareOfWorker(options)];
  for (const limit of ['requestsInFlight', 'watches', 'connects'] as const)
    t.is(part.flowControl?.[limit], Math.ceil((whole.flowControl?.[limit] ?? Number.NaN) / 3), limit);
});

test('every worker uses renewed credentials, as a server and as a client of nodes', async (t) => {
  const data = await mkdtemp(join(tmpdir(), 'keelson-workers-'));
  t.teardown(() => rm(data, { recursive: true }));
  const credentials = await loadCredentials(data, '127.0.0.1', Date.now());
  const { authority: ca, authorityKey } = credentials;

  // An agent that reports with which certificate it is called.
  const agent = createServer(
    { cert: credentials.server.certificate, key: credentials.server.key, ca, requestCert: true },
    ({ socket }, response) => response.end((socket as TLSSocket).getPeerCertificate().subject.CN),
  );
  await new Promise<void>((resolve) => agent.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    agent.closeAllConnections();
    agent.close();
  });

  const options = await loadOptions(
    ['--workers', '2', '--storage', 'memory:', '--listen', '127.0.0.1:0', '--data', data, '--log-level', 'error'],
    {},
  );
  const metrics = createPromMetrics();
  const context = {
    ...{ options, logger: silentLogger, metrics, credentials, advertiseAddress: '127.0.0.1' },
    controllers: processControllers(chooseControllers(false)),
    current: () => credentials,
    ...{ agentClient: undefined, delegated: undefined, localAgents: new Map<string, number>() },
  };
  const threads = new WorkerThreads(context, metrics);
  const plane = await createPlane({ ...(await planeOptions(context)), data, controllers: false }, threads.parts);
  t.teardown(async () => {
    await threads.close();
    await plane.close();
  });
  const node = {
    metadata: { name: 'n1' },
    status: {
      addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
      daemonEndpoints: { kubeletEndpoint: { Port: (agent.address() as AddressInfo).port } },
    },
  };
  await plane.client(Node).create(node as Node);
  await plane
    .client(ServiceAccount)
    .namespace('default')
    .create({ metadata: { name: 'default' } });
  const spec = { nodeName: 'n1', containers: [{ name: 'c', image: 'x' }] };
  await plane
    .client(Pod)
    .namespace('default')
    .create({ metadata: { name: 'p' }, spec } as Pod);
  const { url, setCredentials } = await threads.listen();

  /** The names of the server's certificate and of its client certificate, on 12 new connections. */
  const names = () =>
    Promise.all(
      Array.from({ length: 12 }, async () => {
        const { certificate: cert, key } = credentials.admin;
        const sent = request(`${url}/api/v1/namespaces/default/pods/p/log`, { ca, cert, key, agent: false });
        sent.end();
        const [answer] = (await once(sent, 'response')) as [IncomingMessage];
        const server = (answer.socket as TLSSocket).getPeerCertificate().subject.CN;
        let client = '';
        for await (const chunk of answer) client += String(chunk);
        return `${server} ${client}`;
      }),
    );
  const all = async (expected: string) => until(async () => (await names()).every((name) => name === expected));
  await all('keelson-server keelson-server');

  const issue = (commonName: string, usage: 'client' | 'server') =>
    issueCertificate(
      { certificate: ca, key: authorityKey },
      { commonName, usage, organizations: ['system:masters'], names: { dns: [], ips: ['127.0.0.1'] } },
      Date.now(),
    );
  const [server, agentClient] = [await issue('renewed-server', 'server'), await issue('renewed-client', 'client')];
  setCredentials({ ...credentials, server, agentClient });
  await all('renewed-server renewed-client');
  t.pass();
});
