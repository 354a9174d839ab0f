import { exitToStatus, nodeHeartbeats, podsToRunning } from './agent/fleet-scenarios.ts';
import { agentMemory, idleAgent, manifestToContainer } from './agent/process-scenarios.ts';
import type { BenchOptions } from './options.ts';
import { failedRow, type Row, toRow } from './report/report.ts';
import { accessScenarios } from './scenarios/access.ts';
import { idleWatches, readsBesideLoad } from './scenarios/background.ts';
import { memoryPerObject } from './scenarios/memory.ts';
import { representationScenarios } from './scenarios/representations.ts';
import { requestScenarios } from './scenarios/requests.ts';
import type { Scenario, Stage } from './scenarios/scenario.ts';
import { serverStart, testPlaneStart } from './scenarios/start.ts';
import { slowWatcherTax, watchBurst, watchFanOut, watchFanOutTls } from './scenarios/watch-fan-out.ts';
import { schedulePods, schedulePodsWithRules } from './schedule/schedule-scenario.ts';
import { openStage } from './stage.ts';
import { missingServer } from './stores/database.ts';
import { storeScenarios, wantedStoreScenarios } from './stores/run-stores.ts';
import { isWanted } from './wanted.ts';

export const scenarios: readonly Scenario[] = [
  ...requestScenarios,
  ...representationScenarios,
  ...accessScenarios,
  watchFanOut,
  watchFanOutTls,
  watchBurst,
  slowWatcherTax,
  idleWatches,
  readsBesideLoad,
  memoryPerObject,
  testPlaneStart,
  serverStart,
  schedulePods,
  schedulePodsWithRules,
  nodeHeartbeats,
  podsToRunning,
  exitToStatus,
  manifestToContainer,
  idleAgent,
  agentMemory,
];

/** What a scenario may take beyond its slices: starting servers, loading objects, warming up. */
const scenarioLimitMs = 120_000;

async function withinLimit<T>(work: Promise<T>, limitMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not finished within ${Math.round(limitMs / 1000)} s`)), limitMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * One adapter's scenarios. After a failure the state of the processes is unknown, so the next scenario gets new
 * ones.
 */
async function runAdapter(
  adapter: string,
  wanted: readonly Scenario[],
  options: BenchOptions,
  progress: (text: string) => void,
): Promise<Row[]> {
  const rows: Row[] = [];
  const limitMs = scenarioLimitMs + 3 * (options.rounds + 1) * options.sliceMs;
  let opened: Awaited<ReturnType<typeof openStage>> | undefined;
  try {
    for (const scenario of wanted) {
      const say = (text: string) => progress(`${adapter}: ${scenario.name}: ${text}`);
      try {
        opened ??= await openStage(adapter, options, say);
        const stage: Stage = { ...opened.stage, progress: say };
        const row = toRow(scenario, adapter, await withinLimit(scenario.run(stage), limitMs));
        rows.push(row);
        say(`ratio ${row.ratio.toFixed(2)} (mark ${row.mark}, ${row.verdict})`);
      } catch (error) {
        rows.push(failedRow(scenario, adapter, error as Error));
        say(`failed: ${(error as Error).message}`);
        await opened?.close();
        opened = undefined;
      }
    }
  } finally {
    await opened?.close();
  }
  return rows;
}

const names = scenarios.map(({ name }) => name);

/** Scenarios that ask a server over HTTP. */
export function wantedScenarios(options: BenchOptions): readonly Scenario[] {
  return scenarios.filter(({ name }) => isWanted(options.scenarios, name, names));
}

/**
 * Runs every wanted scenario on every wanted adapter; a scenario that fails or does not end becomes a row that says so.
 */
export async function runBenchmarks(options: BenchOptions, progress: (text: string) => void): Promise<readonly Row[]> {
  const wanted = wantedScenarios(options);
  if (wanted.length === 0 && wantedStoreScenarios(options).length === 0) {
    throw new Error(`--scenarios knows ${[...names, ...storeScenarios.map(({ name }) => name)].join(', ')}`);
  }
  const rows: Row[] = [];
  for (const [index, adapter] of options.adapters.entries()) {
    const own = wanted.filter((scenario) => scenario.everyAdapter || index === 0);
    const missing = await missingServer(adapter);
    if (missing !== undefined) progress(`${adapter}: not measured: ${missing}`);
    else if (own.length > 0) rows.push(...(await runAdapter(adapter, own, options, progress)));
  }
  return rows;
}
