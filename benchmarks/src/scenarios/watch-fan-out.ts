import { httpRequest } from '../fixtures.ts';
import type { Spawned } from '../measure/spawned.ts';
import type { Round, Scenario, Stage } from './scenario.ts';

const watchers = 1_000;
const eventsPerRound = 40;
const path = '/api/v1/namespaces/default/configmaps';
/** About 1.5 KB of data, so that a frame is as large as a pod's. */
const data = 'x'.repeat(1_200);

const create = httpRequest('POST', path, JSON.stringify({ metadata: { name: 'watched' }, data: { data } }));
const patch = httpRequest('PATCH', `${path}/watched`, '{"metadata":{"annotations":{"count":"{n}"}}}')
  .replace('application/json\r\nContent-Length', 'application/merge-patch+json\r\nContent-Length')
  .replace(/Content-Length: (\d+)/, (_, length: string) => `Content-Length: ${Number(length) + 6}`);

/** Smaller than any frame, so that a watcher that has one event has more than this. */
const oneFrame = 1_400;

async function subjectRound(stage: Stage): Promise<number> {
  const before = stage.subject.cpu();
  for (let event = 0; event < eventsPerRound; event += 1) {
    await stage.load.requests({ port: stage.subject.port, connections: 1, count: 1, requests: [patch] });
    await stage.load.drain(oneFrame);
  }
  return ((stage.subject.cpu() - before) * 1e6) / (eventsPerRound * watchers);
}

async function floorRound(stage: Stage, floor: Spawned, frameBytes: number): Promise<number> {
  const before = floor.cpu();
  for (let event = 0; event < eventsPerRound; event += 1) {
    floor.send(`go ${frameBytes}`);
    await stage.load.drain(oneFrame);
  }
  return ((floor.cpu() - before) * 1e6) / (eventsPerRound * watchers);
}

export const watchFanOut: Scenario = {
  name: 'watch fan-out',
  what: 'one event to 1,000 watchers, the write included, beside a C loop of write() of a frame of that size',
  goal: { form: 'times', mark: 2 },
  everyAdapter: true,
  run: async (stage) => {
    const floor = await stage.startWatchFloor();
    await stage.load.requests({ port: stage.subject.port, connections: 1, count: 1, requests: [create] });
    const watch = httpRequest('GET', `${path}?watch=1&fieldSelector=metadata.name%3Dwatched`);
    const rounds: Round[] = [];
    for (let round = 0; round <= stage.rounds; round += 1) {
      await stage.load.watch(floor.port, watchers, httpRequest('GET', '/watch'));
      const below = await floorRound(stage, floor, 1_560);
      await stage.load.unwatch();
      floor.send('reset');
      const current = await currentVersion(stage);
      await stage.load.watch(stage.subject.port, watchers, watch.replace('watch=1', `watch=1&resourceVersion=${current}`));
      const measured = await subjectRound(stage);
      await stage.load.unwatch();
      if (round === 0) continue;
      rounds.push({ floor: below, subject: measured });
      stage.progress(`round ${round} of ${stage.rounds}`);
    }
    return { unit: 'CPU µs per delivery', rounds, notes: { watchers } };
  },
};

async function currentVersion(stage: Stage): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${stage.subject.port}${path}?limit=1`);
  const list = (await response.json()) as { metadata: { resourceVersion: string } };
  return list.metadata.resourceVersion;
}
