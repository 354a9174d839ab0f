import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { kubeconfigAccess, loadKubeconfig } from '@keelson/client';
import { UsageError, withoutPassword } from '@keelson/core/internal';
import { type BenchOptions, type BenchPlan, benchPlan } from './bench-options.ts';
import { fill, type Sample, scenarios } from './scenarios.ts';
import { type KeelsonCommand, type StorageServer, serveStorage } from './serve-storage.ts';
import { Subject, type SubjectAddress } from './subject.ts';

/** The command line that starts a server for a storage. @public */
export type ServeCommand = KeelsonCommand;

/** One scenario on one server: medians of the rounds. @public */
export interface BenchResult {
  readonly scenario: string;
  readonly what: string;
  readonly subject: string;
  /** Operations per second: the median round, the slowest and the fastest. */
  readonly perSecond: { readonly median: number; readonly least: number; readonly most: number };
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time of the server's process per operation; absent for servers that were running already. */
  readonly cpuMicros?: number;
  /** Why the scenario failed. The figures are then those of the rounds before the failure. */
  readonly failed?: string;
}

/** The results of a benchmark, and what it measured. @public */
export interface BenchReport {
  readonly date: string;
  readonly node: string;
  readonly machine: string;
  readonly plan: Omit<BenchPlan, 'object' | 'storages'> & { readonly object: string };
  readonly subjects: readonly string[];
  readonly results: readonly BenchResult[];
}

/** What a run of the benchmark gets from its caller: a command, a callback and a signal. @public */
export interface BenchRun {
  /** Starts the servers of storages; required with storages. */
  readonly serve?: ServeCommand;
  readonly progress?: (text: string) => void;
  /** Ends the run; servers are stopped and objects are deleted. */
  readonly signal?: AbortSignal;
}

/**
 * Measures storages and servers side by side: in every round of a scenario each server has its turn, so that a change
 * of the machine's load affects all of them.
 *
 * @throws UsageError for options and servers that cannot be used
 * @public
 */
export async function runBench(options: BenchOptions, run: BenchRun = {}): Promise<BenchReport> {
  const { progress = () => {}, signal } = run;
  const plan = benchPlan(options);
  const folder = await mkdtemp(join(tmpdir(), 'keelson-bench-'));
  const servers: StorageServer[] = [];
  const subjects: Subject[] = [];
  try {
    const addresses = await peers(plan);
    for (const [index, storage] of plan.storages.entries()) {
      if (run.serve === undefined)
        throw new UsageError('storages require the option serve, which starts their servers');
      progress(`starting a server on ${withoutPassword(storage)}`);
      servers.push(await serveStorage(run.serve, storage, plan.kinds, join(folder, String(index))));
    }
    for (const address of [...servers, ...addresses]) {
      signal?.throwIfAborted();
      const subject = await Subject.open(address, plan.object);
      subjects.push(subject);
      progress(`${subject.name}: creating ${plan.objects} objects`);
      subject.existing.push(...(await fill(subject, plan.objects, plan.clients)));
    }
    const { object, storages: _, ...rest } = plan;
    return {
      date: new Date().toISOString(),
      node: process.version,
      machine: `${cpus().length} x ${cpus()[0]?.model ?? 'unknown processor'}`,
      plan: { ...rest, object: `${object.kind} of ${object.apiVersion}` },
      subjects: subjects.map(({ name }) => name),
      results: await measure(subjects, plan, progress, signal),
    };
  } finally {
    await Promise.allSettled(subjects.map((subject) => subject.close()));
    await Promise.allSettled(servers.map((server) => server.stop()));
    await rm(folder, { recursive: true, force: true });
  }
}

async function peers({ urls, kubeconfigs }: BenchPlan): Promise<SubjectAddress[]> {
  const addresses: SubjectAddress[] = urls.map((server) => {
    if (!URL.canParse(server) || !/^https?:$/.test(new URL(server).protocol))
      throw new UsageError(`--url must be an http or https URL, not ${JSON.stringify(server)}`);
    return { name: server, access: { server } };
  });
  for (const path of kubeconfigs) {
    try {
      const { options, context } = await kubeconfigAccess(await loadKubeconfig({ path }));
      addresses.push({ name: `${context} (${options.server})`, access: options });
    } catch (error) {
      throw new UsageError(`--kubeconfig ${path}: ${(error as Error).message}`);
    }
  }
  return addresses;
}

async function measure(
  subjects: readonly Subject[],
  plan: BenchPlan,
  progress: (text: string) => void,
  signal: AbortSignal | undefined,
): Promise<BenchResult[]> {
  const results: BenchResult[] = [];
  for (const { name, what, run } of scenarios.filter((scenario) => plan.scenarios.includes(scenario.name))) {
    const rounds = subjects.map((): Sample[] => []);
    const failures = subjects.map((): string | undefined => undefined);
    // The first round warms up and is not counted.
    for (let round = 0; round <= plan.rounds; round += 1) {
      progress(`${name}: round ${round} of ${plan.rounds}`);
      for (const [index, subject] of subjects.entries()) {
        signal?.throwIfAborted();
        if (failures[index] !== undefined) continue;
        try {
          const sample = await run(subject, { ...plan, roundMs: round === 0 ? plan.roundMs / 2 : plan.roundMs });
          if (round > 0) rounds[index]?.push(sample);
        } catch (error) {
          failures[index] = (error as Error).message;
          progress(`${name}: ${subject.name} failed: ${failures[index]}`);
        }
      }
    }
    for (const [index, subject] of subjects.entries()) {
      const failed = failures[index];
      const figures = figuresOf(rounds[index] ?? []);
      results.push({
        scenario: name,
        what,
        subject: subject.name,
        ...figures,
        ...(failed === undefined ? {} : { failed }),
      });
    }
  }
  return results;
}

const at = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;

function figuresOf(rounds: readonly Sample[]): Omit<BenchResult, 'scenario' | 'what' | 'subject' | 'failed'> {
  const rates = rounds.map(({ operations, seconds }) => operations / seconds).sort((a, b) => a - b);
  const latencies = rounds.flatMap((round) => round.latencies).sort((a, b) => a - b);
  const cpu = rounds.reduce((sum, { cpuSeconds = Number.NaN }) => sum + cpuSeconds, 0);
  const operations = rounds.reduce((sum, round) => sum + round.operations, 0);
  return {
    perSecond: { median: at(rates, 0.5), least: rates[0] ?? 0, most: rates.at(-1) ?? 0 },
    p50Ms: at(latencies, 0.5),
    p99Ms: at(latencies, 0.99),
    ...(Number.isFinite(cpu) && operations > 0 ? { cpuMicros: (cpu / operations) * 1e6 } : {}),
  };
}
