import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { FakeClock } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import { listeningLogger, manifest, until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { noEvents } from '../../src/base/events/event-recorder.ts';
import { HttpSource } from '../../src/sources/http-source.ts';
import { namesOf } from '../support/bench.ts';

async function open(
  t: ExecutionContext,
  listener: RequestListener,
  headers: readonly (readonly [string, string])[] = [],
) {
  let requests = 0;
  const rawHeaders: string[][] = [];
  const server = createServer((request, response) => {
    requests += 1;
    rawHeaders.push(request.rawHeaders);
    listener(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const sets: (readonly Pod[])[] = [];
  const clock = new FakeClock();
  const logger = listeningLogger();
  const source = new HttpSource({
    url: `http://127.0.0.1:${port}/pods?key=secret`,
    headers,
    periodMs: 20_000,
    nodeName: 'n1',
    sink: (pods) => sets.push(pods),
    clock,
    logger,
    events: noEvents,
  });
  t.teardown(async () => {
    await source.stop();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  /** Advances the clock by a period and waits for one more response. */
  const again = async () => {
    const before = requests;
    await until(() => {
      clock.advance(20_000);
      return requests > before;
    });
  };
  return { source, sets, logger, clock, again, rawHeaders, requests: () => requests };
}

test('--http-check-frequency: the URL is fetched at once and then each period; an identical response changes nothing', async (t) => {
  const opened = await open(t, (_, response) => response.end(manifest('web')));
  await opened.source.start();
  await until(() => opened.sets.length === 1);
  t.deepEqual(namesOf(opened.sets[0] ?? []), ['web-n1']);
  t.is(opened.sets[0]?.[0]?.metadata?.annotations?.['kubernetes.io/config.source'], 'http');
  t.is(opened.requests(), 1);
  opened.clock.advance(19_999);
  await new Promise((resolve) => setTimeout(resolve, 20));
  t.is(opened.requests(), 1);
  await opened.again();
  await opened.again();
  t.is(opened.sets.length, 1);
});

test('--manifest-url: failures keep the pods of the last valid response, an empty response has none', async (t) => {
  const pod = (name: string) => ({ metadata: { name }, spec: { containers: [{ name: 'c', image: 'host' }] } });
  let answer: RequestListener = (_, response) => response.writeHead(500).end('no');
  const opened = await open(t, (request, response) => answer(request, response));
  await opened.source.start();
  await until(() => opened.logger.lines.length === 1);
  t.is(opened.sets.length, 0, 'not seen before the first good answer');
  answer = (_, response) =>
    response.end(JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items: [pod('a'), pod('BAD'), pod('b')] }));
  await opened.again();
  await until(() => opened.sets.length === 1);
  t.deepEqual(namesOf(opened.sets[0] ?? []), ['a-n1', 'b-n1'], 'the bad one is left out');
  const troubles: RequestListener[] = [
    (_, response) => response.end('garbage: ['),
    (_, response) => response.writeHead(404).end(manifest('other')),
    (_, response) => response.writeHead(302, { Location: '/elsewhere' }).end(),
    (_, response) => response.writeHead(200, { 'Content-Length': '500' }).write('apiVersion', () => response.destroy()),
    (_, response) => response.end(manifest('BAD')),
    (request) => request.socket.destroy(),
  ];
  for (const trouble of troubles) {
    answer = trouble;
    const before = opened.logger.lines.length;
    await opened.again();
    await until(() => opened.logger.lines.length > before);
    t.is(opened.sets.length, 1);
  }
  t.false(JSON.stringify(opened.logger.lines).includes('secret'), 'the query may be a credential');
  answer = (_, response) => response.end('');
  await opened.again();
  await until(() => opened.sets.length === 2);
  t.deepEqual(opened.sets[1], []);
});

test('--manifest-url-header: headers are sent with each request, repeated names in order', async (t) => {
  const opened = await open(t, (_, response) => response.end(''), [
    ['X-Pod', 'one'],
    ['Authorization', 'Bearer t'],
    ['X-Pod', 'two'],
  ]);
  await opened.source.start();
  await until(() => opened.sets.length === 1);
  const raw = opened.rawHeaders[0] ?? [];
  const values = raw.filter((_, index) => index % 2 === 1 && raw[index - 1] === 'X-Pod');
  t.deepEqual(values, ['one', 'two']);
  t.true(raw.includes('Bearer t'));
});
