import { createServer } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Pod } from '@keelson/kinds';
import { freePort, until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import type { PodUsage } from '../../../src/base/contracts/pod-queries.ts';
import { openTestServers } from '../../support/test-servers.ts';

const startMs = Date.UTC(2026, 0, 1) - 60_000;

/** One pod in `team` and one in `default`, whose only containers use a CPU each. */
function usageAt(nowMs: number): PodUsage[] {
  const container = (name: string) => ({
    name,
    startTimeMs: startMs,
    timeMs: nowMs,
    cpuNanoSeconds: (nowMs - startMs) * 1e6,
    memoryWorkingSetBytes: 7,
    memoryUsageBytes: 9,
  });
  return [
    { namespace: 'team', name: 'web', uid: 'u1', startTimeMs: startMs, containers: [container('main')] },
    { namespace: 'default', name: 'solo', uid: 'u2', startTimeMs: startMs, containers: [container('"<b>')] },
  ];
}

async function open(t: ExecutionContext, words: readonly string[] = [], usage?: () => Promise<PodUsage[]>) {
  const web = { metadata: { name: 'web', namespace: 'team', uid: 'u1' } } as Pod;
  const { servers, clock, logger } = await openTestServers(t, words, (place) => ({
    state: { pods: () => [web], usage: usage ?? (async () => usageAt(place.clock.now())) },
  }));
  const main = (path: string, { body, method = 'GET' }: { body?: string; method?: string } = {}) =>
    new Promise<{ readonly status: number; readonly body: string }>((resolve, reject) => {
      const options = { agent: false, rejectUnauthorized: false, method };
      const outgoing = httpsRequest(`https://127.0.0.1:${servers.port}${path}`, options, (incoming) => {
        let text = '';
        incoming.on('data', (chunk) => {
          text += String(chunk);
        });
        incoming.on('error', reject);
        incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, body: text }));
      });
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  const stats = async (path: string, init?: RequestInit) => {
    const answer = await fetch(`http://127.0.0.1:${servers.statsPort}${path}`, { redirect: 'manual', ...init });
    return { status: answer.status, headers: answer.headers, body: await answer.text() };
  };
  return { servers, clock, logger, main, stats };
}

const post = (body: unknown) => ({ method: 'POST', body: JSON.stringify(body) });

test('/stats of the main port: the machine, one container, and the selection of a request body', async (t) => {
  const { main, clock } = await open(t);
  const machine = JSON.parse((await main('/stats')).body);
  t.is(machine.name, '/');
  t.true(machine.stats[0].memory.working_set > 0);
  t.deepEqual(machine.subcontainers, [{ name: '/podu1' }, { name: '/podu2' }]);
  clock.advance(10_000);
  const one = JSON.parse((await main('/stats/team/web/u1/main')).body);
  t.like(one, {
    name: '/podu1/main',
    aliases: ['team/web/main'],
    spec: { creation_time: new Date(startMs).toISOString(), has_cpu: true, has_memory: true },
  });
  t.deepEqual(one.stats.at(-1), {
    timestamp: new Date(clock.now()).toISOString(),
    cpu: { usage: { total: 70e9 } },
    memory: { usage: 9, working_set: 7 },
  });
  t.is(JSON.parse((await main(`/stats/solo/${encodeURIComponent('"<b>')}`)).body).aliases[0], 'default/solo/"<b>');
  const named = JSON.parse(
    (await main('/stats/container', post({ containerName: '/podu1', subcontainers: true }))).body,
  );
  t.deepEqual(Object.keys(named), ['/podu1', '/podu1/main']);
  t.deepEqual(Object.keys(JSON.parse((await main('/stats/container')).body)), ['/']);
  for (const [path, message] of [
    ['/stats/team/web/u1/other', 'container "other" is not measured\n'],
    ['/stats/team/web/u9/main', 'container "main" is not measured\n'],
    ['/stats/nope/main', 'pod "nope" does not exist\n'],
    ['/stats/a/b/c', '404 page not found\n'],
  ] as const) {
    t.deepEqual(await main(path), { status: 404, body: message }, path);
  }
  t.is((await main('/stats/container', post({ containerName: '/pod' }))).status, 404);
});

test('recent samples are kept, and a request body selects them: num_stats, start, end', async (t) => {
  const { main, clock } = await open(t);
  const count = async (body: object) =>
    JSON.parse((await main('/stats/team/web/u1/main', post(body))).body).stats.length;
  t.is(await count({}), 1);
  for (let round = 0; round < 3; round += 1) {
    clock.advance(5_000);
    t.is(await count({}), round + 2);
  }
  t.is(await count({}), 4, 'at the same time there is nothing new');
  t.is(await count({ num_stats: 2 }), 2);
  t.is(await count({ num_stats: 0 }), 0);
  t.is(await count({ num_stats: -1 }), 4);
  t.is(await count({ start: new Date(clock.now() - 5_000).toISOString() }), 2);
  t.is(await count({ end: new Date(clock.now() - 5_000).toISOString(), start: '0001-01-01T00:00:00Z' }), 3);
  for (const body of [
    { num_stats: 'x' },
    { num_stats: 1.5 },
    { start: 'now' },
    { containerName: 1 },
    { subcontainers: 'yes' },
    [],
  ])
    t.is((await main('/stats/container', post(body))).status, 400, JSON.stringify(body));
  t.is((await main('/stats/container', { method: 'POST', body: '{' })).status, 400);
});

test('usage is sampled every 10 s, at most 60 samples are kept, and those of removed containers are dropped', async (t) => {
  let gone = false;
  let reads = 0;
  const { main, clock } = await open(t, [], async () => {
    reads += 1;
    return gone ? [] : usageAt(clock.now());
  });
  await until(() => reads === 1);
  for (let round = 2; round <= 70; round += 1) {
    // The next round is only planned when this one has ended.
    await until(() => {
      if (reads < round) clock.advance(10_000);
      return reads >= round;
    });
  }
  const shown = JSON.parse((await main('/stats/team/web/u1/main', post({ num_stats: -1 }))).body);
  t.is(shown.stats.length, 60);
  gone = true;
  clock.advance(1_000);
  t.is((await main('/stats/team/web/u1/main')).status, 404);
});

test('/metrics/cadvisor: the machine and its containers, in the text format of Prometheus', async (t) => {
  const { main } = await open(t);
  const { body } = await main('/metrics/cadvisor');
  t.true(
    body.includes(
      'container_cpu_usage_seconds_total{container="main",id="/podu1/main",namespace="team",pod="web"} 60\n',
    ),
    body,
  );
  t.true(
    body.includes(
      'container_memory_working_set_bytes{container="main",id="/podu1/main",namespace="team",pod="web"} 7\n',
    ),
  );
  t.regex(body, /^container_memory_working_set_bytes\{container="",id="\/",namespace="",pod=""\} \d+$/m);
  t.regex(body, /^machine_cpu_cores \d+$/m);
  t.regex(body, /^container_scrape_error 0$/m);
  t.is((await main('/metrics/nope')).status, 404);
});

test('while the runtime does not respond the machine is still measured, with one warning', async (t) => {
  const { main, logger, clock } = await open(t, [], () => Promise.reject(new Error('away')));
  for (let round = 0; round < 3; round += 1) {
    clock.advance(2_000);
    t.regex((await main('/metrics/cadvisor')).body, /^container_scrape_error 1$/m);
  }
  t.is(logger.lines.length, 1);
});

test('--stats-port: statistics of this machine, as HTML pages and in the form of cAdvisor', async (t) => {
  const { stats, servers, clock } = await open(t, [`--stats-port=${await freePort()}`, '--enable-server=false']);
  t.is(servers.port, undefined, 'it stands by itself');
  t.is((await stats('/healthz')).body, 'ok');
  t.is((await stats('/')).headers.get('location'), '/containers/');
  clock.advance(10_000);
  const page = await stats('/containers/');
  t.is(page.headers.get('content-type'), 'text/html; charset=utf-8');
  t.true(page.body.includes('<td>team/web/main</td>'));
  t.true(page.body.includes('default/solo/&quot;&lt;b&gt;'), 'names are text');
  t.true((await stats('/containers/podu1')).body.includes('/podu1/main'));
  t.is((await stats('/containers/nope')).status, 404);
  t.regex((await stats('/metrics')).body, /^container_start_time_seconds\{container="main"/m);
  t.like(JSON.parse((await stats('/api/v1.3/containers/podu1/main')).body), { name: '/podu1/main' });
  t.is(
    JSON.parse((await stats('/api/v1.0/subcontainers/', { method: 'POST', body: '{"num_stats":1}' })).body).length,
    5,
  );
  const machine = JSON.parse((await stats('/api/v1.3/machine')).body);
  t.true(machine.num_cores > 0);
  t.deepEqual(JSON.parse((await stats('/api')).body), ['v1.0', 'v1.1', 'v1.2', 'v1.3']);
  t.regex((await stats('/api/v2.0/machine')).body, /unknown version "v2.0"; use one of v1.0/);
  t.is((await stats('/api/v1.3/nope')).status, 404);
  t.is((await stats('/pods')).status, 404);
});

test('a --stats-port in use does not prevent the start, and is retried every minute', async (t) => {
  const squatter = createServer();
  await new Promise<void>((resolve) => squatter.listen(0, '127.0.0.1', resolve));
  const { port } = squatter.address() as AddressInfo;
  const { main, servers, logger, clock, stats } = await open(t, [`--stats-port=${port}`]);
  t.is((await main('/healthz')).body, 'ok');
  t.is(servers.statsPort, undefined);
  t.regex(logger.lines[0]?.message ?? '', /--stats-port/);
  clock.advance(60_000);
  await until(() => logger.lines.length === 2);
  await new Promise((resolve) => squatter.close(resolve));
  clock.advance(60_000);
  await until(() => servers.statsPort === port);
  t.is((await stats('/healthz')).body, 'ok');
  await servers.close();
  await t.throwsAsync(stats('/healthz'));
});

test('/debug/pprof of the main port: profile, heap, and contention with --contention-profiling', async (t) => {
  const { main, clock } = await open(t, ['--contention-profiling']);
  t.deepEqual(Object.keys(JSON.parse((await main('/debug/pprof/')).body)), ['profile', 'heap', 'contention']);
  t.true(JSON.parse((await main('/debug/pprof/heap')).body).heap.used_heap_size > 0);
  t.true(JSON.parse((await main('/debug/pprof/contention')).body).event_loop_utilization >= 0);
  for (const seconds of ['0', '61', '-1', 'x', '1e3'])
    t.is((await main(`/debug/pprof/profile?seconds=${seconds}`)).status, 400);
  let profile: { readonly status: number; readonly body: string } | undefined;
  void main('/debug/pprof/profile?seconds=20').then((answer) => {
    profile = answer;
  });
  let busy = 0;
  while (profile === undefined) {
    const other = main('/debug/pprof/profile?seconds=1');
    let done = false;
    void other.then(() => {
      done = true;
    });
    await until(() => {
      clock.advance(1_000);
      return done;
    });
    busy += Number((await other).status === 503);
  }
  t.is(profile.status, 200);
  t.true(busy > 0, 'one at a time');
  t.true(JSON.parse(profile.body).nodes.length > 0);
  for (const path of ['/debug', '/debug/pprof/nope', '/debug/pprof/heap/x']) t.is((await main(path)).status, 404, path);
});

test('/debug/pprof is disabled with the debugging handlers, and contention is measured only on request', async (t) => {
  const plain = await open(t);
  t.is((await plain.main('/debug/pprof/contention')).status, 404);
  const closed = await open(t, ['--enable-debugging-handlers=false', '--contention-profiling']);
  t.is((await closed.main('/debug/pprof/heap')).status, 405);
});
