import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Load } from './load/load.ts';
import { Spawned } from './measure/spawned.ts';
import type { BenchOptions } from './options.ts';
import { loadObjects } from './scenarios/load-objects.ts';
import type { Stage } from './scenarios/scenario.ts';

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));
const keelson = path('../../packages/keelson/dist/src/bin/keelson.js').replace('/benchmarks/packages/', '/packages/');
const floorServer = path('./floors/http-floor-server.js');
const watchFloorSource = path('../../src/floors/watch-floor.c');
const readyLine = /^keelson: serving on http:\/\/127\.0\.0\.1:(\d+)$/m;

/** A stage and what ends it. */
export interface OpenStage {
  readonly stage: Stage;
  close(): Promise<void>;
}

/** Starts the processes of one adapter's run and fills the subject with objects. */
export async function openStage(adapter: string, options: BenchOptions, progress: (text: string) => void): Promise<OpenStage> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-bench-'));
  const spawned: Spawned[] = [];
  const keep = async (starting: Promise<Spawned>) => {
    const process = await starting;
    spawned.push(process);
    return process;
  };
  let servers = 0;
  const start = (extra: readonly string[]) => {
    servers += 1;
    const data = join(folder, `data-${servers}`);
    const storage = adapter === 'memory' ? 'memory:' : `lmdb:${join(data, 'store')}`;
    const words = [
      keelson,
      'serve',
      '--insecure',
      '--listen',
      '127.0.0.1:0',
      '--data',
      data,
      '--storage',
      storage,
      '--log-level',
      'error',
      ...extra,
    ];
    return keep(Spawned.start(process.execPath, words, readyLine));
  };
  const load = new Load();
  const floor = await keep(
    Spawned.start(process.execPath, [floorServer, ...(adapter === 'memory' ? [] : ['--durable', join(folder, 'floor')])]),
  );
  const subject = await start([]);
  progress(`loading ${options.objects} objects`);
  await loadObjects(load, subject.port, options.objects);
  const object = await (await fetch(`http://127.0.0.1:${subject.port}/api/v1/namespaces/bench/pods/pod-first`)).text();
  floor.send(`object ${object.trim()}`);
  floor.send(`list ${options.objects}`);
  return {
    stage: {
      adapter,
      load,
      subject,
      floor,
      start,
      startProgram: (command, args) => keep(Spawned.start(command, args)),
      startWatchFloor: () => keep(startWatchFloor(folder)),
      sliceMs: options.sliceMs,
      rounds: options.rounds,
      objects: options.objects,
      progress,
    },
    close: async () => {
      await load.stop();
      for (const process of spawned) await process.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function startWatchFloor(folder: string): Promise<Spawned> {
  const binary = join(folder, 'watch-floor');
  const { status, error } = spawnSync('cc', ['-O2', '-o', binary, watchFloorSource], { stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) throw new Error(`the watch floor needs a C compiler as cc: ${error?.message ?? `exit code ${status}`}`);
  return Spawned.start(binary, []);
}
