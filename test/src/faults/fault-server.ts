import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { WatchWindow } from 'keelson';
import { type KeelsonProcess, startKeelson } from '../keelson-process.ts';

const kindsModule = fileURLToPath(new URL('./suite-kinds-module.js', import.meta.url));

export interface FaultServerOptions {
  readonly data: string;
  /** `--storage`; default: LMDB under `data`. */
  readonly storage?: string;
  /** Storage in the form of a config file, instead of a URL. */
  readonly adapter?: Readonly<Record<string, unknown>>;
  /** Threads that serve connections. Default 0. */
  readonly workers?: number;
  /** Default {@link narrowWindow}. */
  readonly watchWindow?: WatchWindow;
}

/** Watches that resume or are slow soon have to read from the history of the store. */
const narrowWindow: WatchWindow = { maxEvents: 2 };

/** A `keelson serve` that can be killed and restarted on the same port, with the kinds that workloads write. */
export class FaultServer {
  readonly url: string;
  readonly #options: FaultServerOptions;
  #process: KeelsonProcess | undefined;

  private constructor(options: FaultServerOptions, process: KeelsonProcess) {
    this.#options = options;
    this.#process = process;
    this.url = process.url;
  }

  static async start(options: FaultServerOptions): Promise<FaultServer> {
    return new FaultServer(options, await launch(options));
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  get output(): { readonly stdout: string; readonly stderr: string } {
    return this.#process?.output() ?? { stdout: '', stderr: '' };
  }

  /** Watches since its last start that began before the window of its cache. */
  async historyReads(): Promise<number> {
    const text = await (await fetch(`${this.url}/metrics`)).text();
    const counts = text.matchAll(/^keelson_watch_cache_history_reads_total\{[^}]*\} (\d+)$/gm);
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    await this.#process?.kill();
    this.#process = undefined;
  }

  /** Restarts after `kill`; resolves when it is ready. Returns the duration. */
  async restart(): Promise<number> {
    const began = performance.now();
    this.#process = await launch(this.#options, this.port);
    return performance.now() - began;
  }

  pause(): void {
    process.kill(this.pid, 'SIGSTOP');
  }

  resume(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  async stop(): Promise<void> {
    const running = this.#process;
    if (running === undefined) return;
    this.#process = undefined;
    process.kill(running.pid, 'SIGCONT');
    await running.stop();
  }
}

async function launch(options: FaultServerOptions, port = 0): Promise<KeelsonProcess> {
  const { data, storage, adapter, workers = 0, watchWindow = narrowWindow } = options;
  const config = join(data, 'keelson.json');
  await writeFile(config, JSON.stringify({ watchWindow, ...(adapter === undefined ? {} : { storage: adapter }) }));
  const words = [
    '--insecure',
    '--log-level',
    'error',
    '--kinds',
    kindsModule,
    '--listen',
    `127.0.0.1:${port}`,
    '--config',
    config,
    '--workers',
    String(workers),
  ];
  return startKeelson(data, [...words, ...(storage === undefined ? [] : ['--storage', storage])]);
}
