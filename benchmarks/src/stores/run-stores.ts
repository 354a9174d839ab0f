import { randomBytes } from 'node:crypto';
import type { BenchOptions } from '../options.ts';
import { isWanted } from '../wanted.ts';
import { missingServer } from './database.ts';
import { openGround } from './ground.ts';
import { processScenarios } from './process-scenarios.ts';
import { readScenarios } from './read-scenarios.ts';
import { failedStoreRow, notMeasured, type StoreRow, storeRow } from './store-row.ts';
import { type LoadedStore, loadStore, type StoreScenario, type StoreStage } from './store-scenario.ts';
import { watchScenarios } from './watch-scenarios.ts';
import { writeScenarios } from './write-scenarios.ts';

export const storeScenarios: readonly StoreScenario[] = [
  ...writeScenarios,
  ...readScenarios,
  ...watchScenarios,
  ...processScenarios,
];

const names = storeScenarios.map(({ name }) => name);

export function wantedStoreScenarios({ scenarios }: BenchOptions): readonly StoreScenario[] {
  return storeScenarios.filter(({ name }) => isWanted(scenarios, name, names));
}

const valueBytes = 1024;

async function runStore(
  adapter: string,
  wanted: readonly StoreScenario[],
  options: BenchOptions,
  progress: (text: string) => void,
): Promise<StoreRow[]> {
  const missing = await missingServer(adapter);
  if (missing !== undefined) return wanted.map((scenario) => notMeasured(scenario, adapter, missing));
  const value = randomBytes(valueBytes);
  const ground = await openGround(adapter, value);
  let loading: Promise<LoadedStore> | undefined;
  const rows: StoreRow[] = [];
  try {
    for (const scenario of wanted) {
      const say = (text: string) => progress(`${adapter}: ${scenario.name}: ${text}`);
      const reason = scenario.inapplicable?.(adapter);
      if (reason !== undefined) {
        rows.push(notMeasured(scenario, adapter, reason));
        continue;
      }
      const { rounds, sliceMs, objects } = options;
      const loaded = () => {
        if (loading === undefined) say(`loading ${objects} objects`);
        loading ??= loadStore(ground, objects, value);
        return loading;
      };
      const stage: StoreStage = { ground, value, rounds, sliceMs, objects, progress: say, loaded };
      try {
        const row = storeRow(scenario, adapter, await scenario.run(stage));
        rows.push(row);
        say(`ratio ${row.ratio.toFixed(2)} (${row.mark === '' ? 'no mark' : `mark ${row.mark}`}, ${row.verdict})`);
      } catch (error) {
        rows.push(failedStoreRow(scenario, adapter, error as Error));
        say(`failed: ${(error as Error).message}`);
      }
    }
  } finally {
    await loading?.then(({ store }) => store.close()).catch(() => {});
    await ground.close();
  }
  return rows;
}

/**
 * Measures the stores themselves, without HTTP, beside their raw backends; what cannot be measured is a row that says
 * why.
 */
export async function runStores(options: BenchOptions, progress: (text: string) => void): Promise<readonly StoreRow[]> {
  const wanted = wantedStoreScenarios(options);
  const rows: StoreRow[] = [];
  if (wanted.length === 0) return rows;
  for (const adapter of options.adapters) rows.push(...(await runStore(adapter, wanted, options, progress)));
  return rows;
}
