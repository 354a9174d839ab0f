import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Load } from '../load/load.ts';
import { Spawned } from '../measure/spawned.ts';
import { keelson } from '../schedule/control-processes.ts';
import { keelsonReady } from '../stage.ts';
import { type Database, startDatabase } from '../stores/database.ts';
import type { GrowthPoint } from './growth.ts';

/** Sizes and limits of a run. */
export interface ScaleOptions {
  readonly objects: number;
  readonly watches: number;
  /** Of the watches, those that share HTTP/2 connections with nine others. */
  readonly shared: number;
  readonly list: number;
  /** Writes per second. */
  readonly rate: number;
  /** Time of each part. */
  readonly seconds: number;
  /** Time of the GETs after each step. */
  readonly sliceMs: number;
  /** Resident memory of the server at which a part ends, in bytes. */
  readonly memory: number;
  /** Where `objects`, `watches` and `list` store: `memory` or `lmdb`. */
  readonly storage: 'memory' | 'lmdb';
}

const probe = fileURLToPath(new URL('./delay-probe.js', import.meta.url));
const delayMs = 30_000;

/** Members of `system:masters` are rejected last when the server is late. */
export const scaleToken = 'scale-token';

/** What ends a part before its last step. */
export class PartEnded extends Error {}

/** A server with its load, and the limits of a part. */
export class ScaleStage {
  readonly options: ScaleOptions;
  readonly server: Spawned;
  readonly load: Load;
  readonly points: GrowthPoint[] = [];
  readonly #database: Database | undefined;
  readonly #folder: string;
  readonly #progress: (text: string) => void;
  readonly #until: number;
  #cpu = 0;
  #stop: (() => Promise<unknown>)[] = [];

  private constructor(
    options: ScaleOptions,
    [server, load, database]: readonly [Spawned, Load, Database | undefined],
    folder: string,
    progress: (text: string) => void,
  ) {
    this.options = options;
    this.server = server;
    this.load = load;
    this.#database = database;
    this.#folder = folder;
    this.#progress = progress;
    this.#until = performance.now() + options.seconds * 1000;
    this.#stop = [() => load.stop(), () => server.stop(), async () => database?.stop()];
  }

  static async open(
    options: ScaleOptions,
    adapter: string,
    folder: string,
    progress: (text: string) => void,
  ): Promise<ScaleStage> {
    const database = await startDatabase(adapter);
    try {
      const tokens = join(folder, 'tokens.csv');
      await writeFile(tokens, `${scaleToken},scale,scale-uid,"system:masters"\n`, { mode: 0o600 });
      const own = adapter === 'memory' ? 'memory:' : `lmdb:${join(folder, 'store')}`;
      const words = ['serve', '--listen', '127.0.0.1:0', '--data', join(folder, 'data'), '--token-auth-file', tokens];
      const more = ['--storage', database?.storage('scale') ?? own, '--controllers', 'false', '--log-level', 'error'];
      const server = await Spawned.start(
        process.execPath,
        ['--import', probe, keelson, ...words, ...more],
        keelsonReady,
      );
      const stage = new ScaleStage(options, [server, new Load(), database], folder, progress);
      // The delays of the start are not those of the first step.
      await stage.#delays();
      return stage;
    } catch (error) {
      await database?.stop();
      throw error;
    }
  }

  /** Another load process, for requests beside those of `load`. */
  anotherLoad(): Load {
    const load = new Load();
    this.#stop.unshift(() => load.stop());
    return load;
  }

  /** Time that is left for the part. */
  get leftMs(): number {
    return this.#until - performance.now();
  }

  /** @throws PartEnded when the time or the memory of the part is used up */
  check(): void {
    if (this.leftMs <= 0) throw new PartEnded(`the time of ${this.options.seconds} s was over`);
    this.checkMemory();
  }

  /** @throws PartEnded when the memory of the part is used up */
  checkMemory(): void {
    if (this.server.memory() > this.options.memory)
      throw new PartEnded(`the server had reached ${Math.round(this.options.memory / 1e6)} MB`);
  }

  /** CPU seconds of the server, and of its database, since the previous call. */
  cpuSince(): number {
    const now = this.server.cpu() + (this.#database?.cpu() ?? 0);
    const used = now - this.#cpu;
    this.#cpu = now;
    return used;
  }

  /** Records a size with the memory of the server and the delays of its event loop since the previous one. */
  async record(x: number, figures: Readonly<Record<string, number>>): Promise<void> {
    const { p99, max } = await this.#delays();
    const store = this.#database === undefined ? {} : { 'store MB': this.#database.memory() / 1e6 };
    const memory = { 'server MB': this.server.memory() / 1e6, ...store };
    this.points.push({ x, figures: { ...figures, ...memory, 'loop delay p99 ms': p99, 'loop delay max ms': max } });
    this.#progress(`${x}: ${Math.round(memory['server MB'])} MB`);
  }

  async #delays(): Promise<{ readonly p99: number; readonly max: number }> {
    const file = join(this.#folder, 'delays');
    this.server.send(file);
    for (const until = performance.now() + delayMs; ; await pause(20)) {
      try {
        const text = await readFile(file, 'utf8');
        await rm(file);
        return JSON.parse(text) as { p99: number; max: number };
      } catch (error) {
        if (performance.now() > until) throw error;
      }
    }
  }

  async close(): Promise<void> {
    for (const stop of this.#stop) await stop();
  }
}
