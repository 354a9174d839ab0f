import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Load } from './load/load.ts';
import { Spawned } from './measure/spawned.ts';
import type { BenchOptions } from './options.ts';
import { firstPod, loadObjects, podsPath } from './scenarios/load-objects.ts';
import type { Stage } from './scenarios/scenario.ts';
import { startDatabase } from './stores/database.ts';

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));
const keelson = path('../../packages/keelson/dist/bundle/keelson.js').replace('/benchmarks/packages/', '/packages/');
const floorServer = path('./floors/http-floor-server.js');
const watchFloorServer = path('./floors/watch-floor-server.js');
const watchFloorSource = path('../../src/floors/watch-floor.c');
const readyLine = /^keelson: serving on https?:\/\/127\.0\.0\.1:(\d+)$/m;

/** A stage and what ends it. */
export interface OpenStage {
  readonly stage: Stage;
  close(): Promise<void>;
}

/** Starts the processes of one adapter's run and fills the subject with objects. */
export async function openStage(
  adapter: string,
  options: BenchOptions,
  progress: (text: string) => void,
): Promise<OpenStage> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-bench-'));
  const database = await startDatabase(adapter);
  const spawned: Spawned[] = [];
  const keep = async (starting: Promise<Spawned>) => {
    const process = await starting;
    spawned.push(process);
    return process;
  };
  let servers = 0;
  const start = (extra: readonly string[], insecure = true) => {
    servers += 1;
    const data = join(folder, `data-${servers}`);
    const own = adapter === 'memory' ? 'memory:' : `lmdb:${join(data, 'store')}`;
    const storage = database?.storage(`bench${servers}`) ?? own;
    const words = [
      keelson,
      'serve',
      ...(insecure ? ['--insecure'] : []),
      '--listen',
      '127.0.0.1:0',
      '--data',
      data,
      '--storage',
      storage,
      '--log-level',
      'error',
      // The pods of the scenarios name nodes that do not exist, so that they would be deleted after 40 s.
      '--controllers',
      'api,-pod-garbage-collector-controller',
      ...extra,
    ];
    return keep(Spawned.start(process.execPath, words, readyLine));
  };
  const load = new Load();
  const loads = [load];
  const close = async () => {
    await Promise.all(loads.map((each) => each.stop()));
    await Promise.all(spawned.map((process) => process.stop()));
    await database?.stop();
    await rm(folder, { recursive: true, force: true });
  };
  const fill = async (): Promise<Stage> => {
    const floor = await keep(
      Spawned.start(process.execPath, [
        floorServer,
        ...(adapter === 'memory' ? [] : ['--durable', join(folder, 'floor')]),
      ]),
    );
    const subject = await start([]);
    progress(`loading ${options.objects} objects`);
    await loadObjects(load, subject.port, options.objects);
    const object = await (await fetch(`http://127.0.0.1:${subject.port}${podsPath}/${firstPod}`)).text();
    floor.send(`object ${object.trim()}`);
    floor.send(`list ${options.objects}`);
    const { sliceMs, rounds, objects, watchers, events } = options;
    return {
      adapter,
      load,
      subject,
      floor,
      start,
      startLoad: () => {
        const another = new Load();
        loads.push(another);
        return another;
      },
      startProgram: (command, args) => keep(Spawned.start(command, args)),
      startWatchFloor: async (frameBytes) => {
        const { starting, remark } = startWatchFloor(folder, frameBytes, adapter === 'lmdb');
        return { floor: await keep(starting), ...(remark === undefined ? {} : { remark }) };
      },
      sliceMs,
      rounds,
      objects,
      watchers,
      events,
      progress,
    };
  };
  try {
    return { stage: await fill(), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** `durable`: it does a durable write before it sends, as a subject must whose store is in its process. */
function startWatchFloor(
  folder: string,
  frameBytes: number,
  durable: boolean,
): { starting: Promise<Spawned>; remark?: string } {
  const words = [String(frameBytes), ...(durable ? [join(folder, 'watch-floor-log')] : [])];
  const binary = join(folder, 'watch-floor');
  const { status } = spawnSync('cc', ['-O2', '-o', binary, watchFloorSource], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status === 0) return { starting: Spawned.start(binary, words) };
  return {
    starting: Spawned.start(process.execPath, [watchFloorServer, ...words]),
    remark: 'no C compiler (cc) here: the floor is a Node loop of socket.write, which costs about 1.35 of the C loop',
  };
}
