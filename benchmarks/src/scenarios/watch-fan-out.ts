import type { Spawned } from '../measure/spawned.ts';
import type { Measurement, Round, Scenario, Stage } from './scenario.ts';
import { createWatched, frameBytes, type WatchedObject, watchRequest } from './watched-object.ts';

/** Two servers do the same alternately: CPU µs per delivery. */
async function deliveries(
  stage: Stage,
  server: Spawned,
  object: WatchedObject,
  burst: number,
  request?: string,
): Promise<number> {
  const watchers = stage.watchers;
  await stage.load.watch({ port: server.port, watchers, stalled: 0, request: request ?? (await watchRequest(server, object)) });
  const before = server.cpu();
  const { requests } = await stage.load.fanOut({
    port: server.port,
    request: object.patch,
    events: stage.events,
    burst,
    bytes: object.leastFrame,
  });
  const used = server.cpu() - before;
  await stage.load.unwatch();
  return (used * 1e6) / requests;
}

async function rounds(
  stage: Stage,
  below: () => Promise<number>,
  measured: () => Promise<number>,
  notes: Measurement['notes'],
): Promise<Measurement> {
  const counted: Round[] = [];
  for (let round = 0; round <= stage.rounds; round += 1) {
    const pair = { floor: await below(), subject: await measured() };
    if (round === 0) continue;
    counted.push(pair);
    stage.progress(`round ${round} of ${stage.rounds}`);
  }
  return { unit: 'CPU µs per delivery', rounds: counted, ...(notes ? { notes } : {}) };
}

export const watchFanOut: Scenario = {
  name: 'watch',
  what: 'one event to 1,000 watchers, the write included, beside a loop of write() of a frame of that size',
  goal: { form: 'times', mark: 2 },
  everyAdapter: true,
  run: async (stage) => {
    const object = await createWatched(stage, stage.subject, 'watched', 1_200);
    const { floor, remark } = await stage.startWatchFloor(await frameBytes(stage.subject, object));
    const forget = `DELETE / HTTP/1.1\r\n\r\n`;
    const measured = await rounds(
      stage,
      async () => {
        const cost = await deliveries(stage, floor, object, 1, 'GET / HTTP/1.1\r\n\r\n');
        await stage.load.requests({ port: floor.port, connections: 1, count: 1, requests: [forget] });
        return cost;
      },
      () => deliveries(stage, stage.subject, object, 1),
      { watchers: stage.watchers },
    );
    await floor.stop();
    return { ...measured, ...(remark === undefined ? {} : { remark }) };
  },
};

export const watchBurst: Scenario = {
  name: 'watch burst',
  what: 'twenty writes at once to 1,000 watchers, the writes included, beside the same writes one after the other',
  goal: { form: 'share', mark: 2 },
  everyAdapter: false,
  run: async (stage) => {
    const objects = await createWatched(stage, stage.subject, 'burst', 1_200);
    return rounds(
      stage,
      () => deliveries(stage, stage.subject, objects, 1),
      () => deliveries(stage, stage.subject, objects, 20),
      { watchers: stage.watchers },
    );
  },
};

/** Large frames, so that the buffers of the system between both sides are full within a round. */
const largeData = 64 * 1024;

export const slowWatcherTax: Scenario = {
  name: 'slow watchers',
  what: 'p99 of deliveries of 64 KB to 50 watchers with 5 more that read nothing, beside the same without those',
  goal: { form: 'times', mark: 1.1 },
  everyAdapter: false,
  run: async (stage) => {
    const object = await createWatched(stage, stage.subject, 'large', largeData);
    const p99 = async (stalled: number) => {
      const watchers = Math.min(50, stage.watchers);
      await stage.load.watch({ port: stage.subject.port, watchers, stalled, request: await watchRequest(stage.subject, object) });
      const { p99Ms } = await stage.load.fanOut({
        port: stage.subject.port,
        request: object.patch,
        events: stage.events * 3,
        burst: 1,
        bytes: object.leastFrame,
      });
      await stage.load.unwatch();
      return p99Ms;
    };
    const measured = await rounds(
      stage,
      () => p99(0),
      () => p99(5),
      undefined,
    );
    return { ...measured, unit: 'p99 ms of a delivery' };
  },
};
