import { setTimeout as sleep } from 'node:timers/promises';
import { httpRequest } from '../fixtures.ts';
import { Load } from '../load/load.ts';
import { firstPod, podsPath } from './load-objects.ts';
import type { Scenario } from './scenario.ts';
import { createWatched, watchRequest } from './watched-object.ts';

export const idleWatches: Scenario = {
  name: 'idle with 100 watches',
  what: 'share of a core that a server uses while 100 watches are open and nothing happens, beside 1 %',
  goal: { form: 'times', mark: 1 },
  everyAdapter: true,
  run: async (stage) => {
    const request = httpRequest('GET', `${podsPath}?watch=1&resourceVersion=0&labelSelector=app%3Dnobody`);
    await stage.load.watch({ port: stage.subject.port, watchers: Math.min(100, stage.watchers), stalled: 0, request });
    const rounds = [];
    for (let round = 0; round <= stage.rounds; round += 1) {
      const before = stage.subject.cpu();
      const at = performance.now();
      await sleep(stage.sliceMs);
      const share = (stage.subject.cpu() - before) / ((performance.now() - at) / 1000);
      if (round > 0) rounds.push({ floor: 1, subject: share * 100 });
    }
    await stage.load.unwatch();
    return { unit: '% of a core', rounds };
  },
};

/** What the neighbours of the measured requests do. */
const watchers = 100;
const eventsPerSecond = 100;

export const readsBesideLoad: Scenario = {
  name: 'get beside list and watches',
  what: `p99 of GET (4 connections, 200 a second) while one client reads the list of 10,000 without pause and ${watchers} watchers get ${eventsPerSecond} events a second, beside the same GET alone; all clients share one core`,
  goal: { form: 'times', mark: 5 },
  everyAdapter: false,
  run: async (stage) => {
    const { port } = stage.subject;
    const object = await createWatched(stage, stage.subject, 'beside', 1_200);
    const lister = new Load();
    const writer = new Load();
    const job = {
      port,
      connections: 4,
      pauseMs: 20,
      durationMs: stage.sliceMs,
      requests: [httpRequest('GET', `${podsPath}/${firstPod}`)],
    };
    const rounds = [];
    try {
      await writer.watch({
        port,
        watchers: Math.min(watchers, stage.watchers),
        stalled: 0,
        request: await watchRequest(stage.subject, object),
      });
      for (let round = 0; round <= stage.rounds; round += 1) {
        const alone = await stage.load.requests(job);
        const [beside] = await Promise.all([
          stage.load.requests(job),
          lister.requests({
            port,
            connections: 1,
            durationMs: stage.sliceMs,
            requests: [httpRequest('GET', podsPath)],
          }),
          writer.requests({
            port,
            connections: 1,
            durationMs: stage.sliceMs,
            pauseMs: 1000 / eventsPerSecond,
            requests: [object.patch],
          }),
        ]);
        if (round === 0) continue;
        rounds.push({ floor: alone.p99Ms, subject: beside.p99Ms });
        stage.progress(`round ${round} of ${stage.rounds}`);
      }
    } finally {
      await lister.stop();
      await writer.stop();
    }
    return { unit: 'p99 ms of a GET', rounds };
  },
};
