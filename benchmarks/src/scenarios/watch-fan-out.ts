import { Audience } from './audience.ts';
import type { Measurement, Round, Scenario, Stage } from './scenario.ts';
import { createWatched, frameBytes, watchRequest, watchRequestOf } from './watched-object.ts';

async function rounds(
  stage: Stage,
  unit: string,
  below: () => Promise<number>,
  measured: () => Promise<number>,
): Promise<Measurement> {
  const counted: Round[] = [];
  for (let round = 0; round <= stage.rounds; round += 1) {
    const pair = { floor: await below(), subject: await measured() };
    if (round === 0) continue;
    counted.push(pair);
    stage.progress(`round ${round} of ${stage.rounds}`);
  }
  return { unit, rounds: counted };
}

const perDelivery = 'CPU µs per delivery';

/** Fan-out of one event, beside a program that sends as many bytes. */
const fanOutWith = (name: string, what: string, mark: number, tls: boolean): Scenario => ({
  name,
  what: `one event to 1,000 watchers, the write included, beside a loop of ${what} of a frame of that size`,
  goal: { form: 'times', mark },
  everyAdapter: true,
  run: async (stage) => {
    const object = await createWatched(stage, stage.subject, tls ? 'watched-tls' : 'watched', 1_200);
    const { floor, remark } = await stage.startWatchFloor(await frameBytes(stage.subject, object), tls);
    const open = ['--anonymous-auth', '--authorization-mode', 'AlwaysAllow'];
    const subject = tls ? await stage.start(open, false) : stage.subject;
    if (tls) await createWatched(stage, subject, object.name, 1_200, true);
    await Audience.warmUp(stage, subject, object, tls);
    const watch = tls ? watchRequestOf(object) : await watchRequest(subject, object);
    const below = await Audience.open(stage, floor, object, ['GET / HTTP/1.1\r\n\r\n'], tls);
    const audience = await Audience.open(stage, subject, object, [watch], tls);
    try {
      const measured = await rounds(
        stage,
        perDelivery,
        () => below.delivery(),
        () => audience.delivery(),
      );
      return { ...measured, notes: { watchers: stage.watchers }, ...(remark === undefined ? {} : { remark }) };
    } finally {
      await Promise.all([below.close(), audience.close(), floor.stop(), ...(tls ? [subject.stop()] : [])]);
    }
  },
});

export const watchFanOut = fanOutWith('watch', 'write()', 2, false);
export const watchFanOutTls = fanOutWith('watch TLS', 'SSL_write()', 1.5, true);

export const watchBurst: Scenario = {
  name: 'watch burst',
  what: 'twenty writes at once to 1,000 watchers, the writes included, beside the same writes one after the other',
  goal: { form: 'share', mark: 2 },
  everyAdapter: false,
  run: async (stage) => {
    const object = await createWatched(stage, stage.subject, 'burst', 1_200);
    await Audience.warmUp(stage, stage.subject, object);
    const audience = await Audience.open(stage, stage.subject, object, [await watchRequest(stage.subject, object)]);
    try {
      const measured = await rounds(
        stage,
        perDelivery,
        () => audience.delivery(1),
        () => audience.delivery(20),
      );
      return { ...measured, notes: { watchers: stage.watchers } };
    } finally {
      await audience.close();
    }
  },
};

/** Large frames, so that the buffers of the system between both sides are full within a round. */
const largeData = 64 * 1024;
/** So many of a round's events are enough for them. */
const largeShare = 0.6;

export const slowWatcherTax: Scenario = {
  name: 'slow watchers',
  what: 'p99 of deliveries of 64 KB to 50 watchers with 5 more that read nothing, beside the same without those',
  goal: { form: 'times', mark: 1.1 },
  everyAdapter: false,
  run: async (stage) => {
    const object = await createWatched(stage, stage.subject, 'large', largeData);
    const p99 = async (stalled: number) => {
      const watchers = Math.min(50, stage.watchers);
      await stage.load.watch({
        port: stage.subject.port,
        watchers,
        stalled,
        request: await watchRequest(stage.subject, object),
      });
      const { p99Ms } = await stage.load.fanOut({
        port: stage.subject.port,
        request: object.patch,
        events: Math.ceil(stage.events * largeShare),
        burst: 1,
        bytes: object.leastFrame,
      });
      await stage.load.unwatch();
      return p99Ms;
    };
    return rounds(
      stage,
      'p99 ms of a delivery',
      () => p99(0),
      () => p99(5),
    );
  },
};
