import { appendFile, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type CheckOptions,
  checkHistory,
  describeVerdict,
  Random,
  saveHistory,
  type Verdict,
  Workload,
  type WorkloadOptions,
} from '@keelson/conformance';
import { type ExecutionContext, registerCompletionHandler } from 'ava';
import { memoryDirectory, removeDirectory } from '../keelson-process.ts';

// Interrupted connections may leave a socket that is never notified of its end; the tests of a file are over when they
// have been judged.
registerCompletionHandler(() => process.exit());

/** KEELSON_SEED, or a new one for each process. */
export const seed = Number(process.env['KEELSON_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

/** Share of the full numbers of faults; `npm run faults` sets it. */
const scale = process.env['KEELSON_FAULT_SCALE'];

/** Number of faults of a run: `few` in a normal test run, `full` with `npm run faults`. */
export function faults(few: number, full: number): number {
  return scale === undefined ? few : Math.max(1, Math.round(full * Number(scale)));
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A new directory that is removed after the test. */
export async function directoryFor(t: ExecutionContext): Promise<string> {
  const path = await memoryDirectory();
  t.teardown(() => removeDirectory(path));
  return path;
}

const begun = new Map<string, number>();

/** Prints a line on stderr periodically, when the runner was requested to report progress. */
export function progress(t: ExecutionContext, done: number, all: number, note: () => string): void {
  if (process.env['KEELSON_FAULT_PROGRESS'] === undefined) return;
  const now = performance.now();
  const since = begun.get(t.title) ?? now;
  begun.set(t.title, since);
  // The clock starts with the first fault, so the first one gives no estimate of the duration.
  const left = done > 1 ? `, about ${Math.ceil(((now - since) / (done - 1)) * (all - done) * 0.001)} s left` : '';
  process.stderr.write(`${t.title}: ${done} of ${all}${left}, ${note()}\n`);
}

/** A row of the table of full runs; see scripts/faults.mjs. */
async function report(t: ExecutionContext, { verdict, counts }: Verdict, faultCount: number): Promise<void> {
  const file = process.env['KEELSON_FAULT_REPORT'];
  if (file !== undefined)
    await appendFile(file, `${JSON.stringify({ title: t.title, faults: faultCount, verdict, counts, seed })}\n`);
}

/** One run of a workload under faults. */
export interface FaultRun {
  readonly random: Random;
  readonly workload: Workload;
  /**
   * Waits for so many more acknowledged writes: the service continues, and slow machines have enough writes to judge
   * too.
   */
  traffic(writes: number): Promise<void>;
  /** Ends the workload and checks the history; keeps it and fails the test when there is a violation. */
  judge(options: CheckOptions & { readonly faults: number }): Promise<Verdict>;
}

/** Starts a workload with the seed of the run. */
export async function startRun(t: ExecutionContext, options: Omit<WorkloadOptions, 'seed'>): Promise<FaultRun> {
  t.log(`KEELSON_SEED=${seed}`);
  const workload = new Workload({ ...options, seed });
  t.teardown(() => workload.stop());
  await workload.start();
  const judge = async ({ faults: count, ...check }: CheckOptions & { readonly faults: number }): Promise<Verdict> => {
    await workload.finish();
    const verdict = checkHistory(workload.recorder, check);
    await report(t, verdict, count);
    t.log(describeVerdict({ ...verdict, violations: [] }));
    if (verdict.verdict !== 'ok') {
      const folder = join(tmpdir(), 'keelson-faults');
      await mkdir(folder, { recursive: true });
      const path = join(folder, `history-${seed}-${Date.now()}.jsonl`);
      await saveHistory(path, workload.recorder);
      t.log(`the history is kept in ${path}`);
      const settings = scale === undefined ? '' : `KEELSON_FAULT_SCALE=${scale} `;
      t.log(`again: KEELSON_SEED=${seed} ${settings}npx ava 'test/dist/test/faults/**' --match '${t.title}'`);
    }
    t.is(verdict.verdict, 'ok', describeVerdict(verdict));
    return verdict;
  };
  const traffic = async (writes: number): Promise<void> => {
    const due = workload.acknowledged + writes;
    if (!(await until(() => workload.acknowledged >= due, 60_000)))
      throw new Error(`no ${writes} writes within a minute`);
  };
  return { random: new Random(seed ^ 0x5f17), workload, traffic, judge };
}

/** Waits until a condition holds; false when it does not in time. */
export async function until(condition: () => boolean, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > deadline) return false;
    await sleep(10);
  }
  return true;
}
