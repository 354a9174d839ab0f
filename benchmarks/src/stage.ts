import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createSelfSigned } from '@keelson/certificates';
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
/** What `keelson serve` prints when it can be asked. */
export const keelsonReady = /^keelson: serving on https?:\/\/127\.0\.0\.1:(\d+)$/m;

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
    return keep(Spawned.start(process.execPath, words, keelsonReady));
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
      startWatchFloor: async (frameBytes, tls = false) => {
        const { starting, remark } = startWatchFloor(folder, frameBytes, {
          log: adapter === 'lmdb' ? join(folder, 'watch-floor-log') : '',
          keyFiles: tls ? await newKeyFiles(folder) : undefined,
        });
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

/** Creates a certificate and its key for a floor with TLS. */
async function newKeyFiles(folder: string): Promise<readonly [string, string]> {
  const notAfter = new Date(Date.now() + 86_400_000);
  const pair = await createSelfSigned({
    subject: { commonName: 'floor' },
    usages: ['server auth'],
    notBefore: new Date(Date.now() - 60_000),
    notAfter,
  });
  const files = [join(folder, 'floor.crt'), join(folder, 'floor.key')] as const;
  await writeFile(files[0], pair.certificate);
  await writeFile(files[1], pair.key, { mode: 0o600 });
  return files;
}

/**
 * `log`: a file to which it does a durable write before it sends, as a subject must whose store is in its process.
 * `keyFiles`: it speaks TLS.
 */
function startWatchFloor(
  folder: string,
  frameBytes: number,
  { log, keyFiles }: { readonly log: string; readonly keyFiles: readonly [string, string] | undefined },
): { starting: Promise<Spawned>; remark?: string } {
  const words = [String(frameBytes), log, ...(keyFiles ?? [])];
  const binary = join(folder, keyFiles ? 'watch-floor-tls' : 'watch-floor');
  const library = keyFiles ? ['-DTLS', '-lssl', '-lcrypto'] : [];
  const { status } = spawnSync('cc', ['-O2', '-o', binary, watchFloorSource, ...library], {
    stdio: ['ignore', 'inherit', keyFiles ? 'ignore' : 'inherit'],
  });
  if (status === 0) return { starting: Spawned.start(binary, words) };
  return {
    starting: Spawned.start(process.execPath, [watchFloorServer, ...words]),
    remark: `no C compiler (cc)${keyFiles ? ' or no OpenSSL headers' : ''} here: the floor is a Node loop of socket.write, which costs about 1.35 of the C loop`,
  };
}
