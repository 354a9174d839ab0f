import { writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { isConnectionError } from '@keelson/client';
import { FakeClock, systemClock } from '@keelson/core/runtime';
import { Node, Pod } from '@keelson/kinds';
import { listeningLogger, temporaryDirectory, until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { createAgentClients } from '../../../src/startup/api/client-source.ts';
import { wordsConfig } from '../../support/bench.ts';

const json = (response: ServerResponse, value: unknown, status = 200) =>
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value));

const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } };

async function open(
  t: ExecutionContext,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  options: {
    contentType?: string;
    qps?: number;
    burst?: number;
    fake?: boolean;
    late?: boolean;
    words?: readonly string[];
  } = {},
) {
  const seen: { method: string; accept: string; type: string; authorization: string }[] = [];
  const server = createServer((request, response) => {
    const { accept = '', 'content-type': type = '', authorization = '' } = request.headers;
    seen.push({ method: request.method ?? '', accept, type, authorization });
    request.resume().on('end', () => answer(request, response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const directory = await temporaryDirectory(t);
  const clusterconfig = join(directory, 'clusterconfig');
  const write = () =>
    writeFile(
      clusterconfig,
      JSON.stringify({
        'current-context': 'a',
        contexts: [{ name: 'a', context: { cluster: 'c', user: 'u' } }],
        clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } }],
        users: [{ name: 'u', user: { token: 'secret' } }],
      }),
    );
  if (!options.late) await write();
  const clock = options.fake ? new FakeClock() : systemClock;
  const logger = listeningLogger();
  const { contentType = 'application/vnd.kubernetes.protobuf', qps = 0, burst = 0, words = [] } = options;
  const { api } = wordsConfig(directory, [`--clusterconfig=${clusterconfig}`, ...words]);
  const chaosChance = api?.chaosChance ?? 0;
  const config = {
    clusterconfig,
    bootstrap: undefined,
    rotateCertificates: false,
    qps,
    burst,
    contentType,
    chaosChance,
  };
  const clients = createAgentClients({ config, heartbeatMs: 1000, clock, logger, random: madeUp(1) });
  t.teardown(async () => {
    clients.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { clients, seen, logger, write, clock };
}

/** Reproducible pseudorandom numbers of a Lehmer generator. */
function madeUp(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

test('--chaos-chance: about that fraction of the requests fails before it is sent to the server', async (t) => {
  const { clients, seen, clock } = await open(t, (_, response) => json(response, node), {
    words: ['--chaos-chance=0.3'],
    fake: true,
  });
  if (!(clock instanceof FakeClock)) throw new Error('the clock is a fake one');
  const total = 100;
  let failed = 0;
  for (let i = 0; i < total; i += 1) {
    let settled = false;
    const settle = () => (settled = true);
    const request = clients.main.resource(Node).get('n1');
    request.then(settle, (error: unknown) => {
      t.true(isConnectionError(error, 'Unreachable'), String(error));
      failed += 1;
      settle();
    });
    await until(() => {
      if (!settled) clock.advance(50);
      return settled;
    });
  }
  t.is(seen.length, total - failed);
  t.true(failed > total * 0.15 && failed < total * 0.45, `${failed} of ${total} failed`);
});

test('--chaos-chance=1 delays and fails every request of every client; without it no request is changed', async (t) => {
  const bad = await open(t, (_, response) => json(response, node), { words: ['--chaos-chance=1'], fake: true });
  if (!(bad.clock instanceof FakeClock)) throw new Error('the clock is a fake one');
  for (const client of [bad.clients.main, bad.clients.heartbeat, bad.clients.events]) {
    let failure: unknown;
    const request = client.resource(Node).get('n1');
    const caught = request.catch((error: unknown) => {
      failure = error;
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
    t.is(failure, undefined, 'no time has passed');
    bad.clock.advance(1_000);
    await caught;
    t.regex(String(failure), /--chaos-chance/);
  }
  t.is(bad.seen.length, 0);
  const good = await open(t, (_, response) => json(response, node));
  for (let i = 0; i < 20; i += 1) await good.clients.main.resource(Node).get('n1');
  t.is(good.seen.length, 20);
});

test('--cluster-api-content-type: protobuf is used, with the credentials of --clusterconfig', async (t) => {
  const { clients, seen } = await open(t, (_, response) => json(response, node));
  await clients.main.resource(Node).get('n1');
  t.true(seen[0]?.accept.startsWith('application/vnd.kubernetes.protobuf'), seen[0]?.accept);
  t.is(seen[0]?.authorization, 'Bearer secret');
  await clients.main
    .resource(Node)
    .create({ metadata: { name: 'n1' } })
    .catch(() => {});
  t.is(seen[1]?.type, 'application/vnd.kubernetes.protobuf');
  const plain = await open(t, (_, response) => json(response, node), { contentType: 'application/json' });
  await plain.clients.main.resource(Node).get('n1');
  t.false(plain.seen[0]?.accept.includes('protobuf'));
});

test('after a server rejects protobuf, requests and watches use JSON', async (t) => {
  const { clients, seen, logger } = await open(t, (request, response) => {
    if (request.headers.accept?.includes('protobuf') || request.headers['content-type']?.includes('protobuf')) {
      return json(
        response,
        { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotAcceptable', code: 406 },
        406,
      );
    }
    if (request.url?.includes('watch=')) return response.writeHead(200, { 'Content-Type': 'application/json' }).end();
    return json(response, node);
  });
  const found = await Promise.all([clients.main.resource(Node).get('n1'), clients.main.resource(Node).get('n1')]);
  t.deepEqual(
    found.map(({ metadata }) => metadata?.name),
    ['n1', 'n1'],
  );
  const events = [];
  for await (const event of clients.heartbeat.resource(Pod).namespace('x').watch()) events.push(event);
  t.deepEqual(events, []);
  const before = seen.length;
  await clients.main.resource(Node).get('n1');
  t.is(seen.length, before + 1);
  t.is(logger.lines.filter(({ message }) => message.includes('protobuf')).length, 1);
});

test('a --clusterconfig that cannot be used is logged once, and used as soon as it is valid', async (t) => {
  const { clients, logger, write, clock } = await open(t, (_, response) => json(response, node), {
    late: true,
    fake: true,
  });
  const nodes = clients.main.resource(Node);
  for (let tries = 0; tries < 3; tries += 1) {
    const error = await t.throwsAsync(nodes.get('n1'));
    t.true(isConnectionError(error, 'Unreachable'));
    (clock as FakeClock).advance(1000);
  }
  t.is(logger.lines.length, 1);
  await write();
  t.is((await nodes.get('n1')).metadata?.name, 'n1');
});

test('--cluster-api-qps and --cluster-api-burst limit requests, but neither heartbeats nor events', async (t) => {
  const { clients, seen, clock } = await open(t, (_, response) => json(response, node), {
    qps: 2,
    burst: 3,
    fake: true,
  });
  const gets = Array.from({ length: 6 }, () => clients.main.resource(Node).get('n1'));
  await until(() => seen.length === 3);
  await Promise.all([
    ...Array.from({ length: 10 }, () => clients.heartbeat.resource(Node).get('n1')),
    clients.events.resource(Node).get('n1'),
  ]);
  t.is(seen.length, 14, 'three of the limited ones, eleven of the others');
  (clock as FakeClock).advance(500);
  await until(() => seen.length === 15);
  await until(() => {
    (clock as FakeClock).advance(500);
    return seen.length === 17;
  });
  await Promise.all(gets);
});

test('after close no request is sent', async (t) => {
  const { clients, seen } = await open(t, (_, response) => json(response, node));
  clients.close();
  const error = await t.throwsAsync(clients.main.resource(Node).get('n1'));
  t.true(isConnectionError(error, 'Closed'));
  t.is(seen.length, 0);
});
