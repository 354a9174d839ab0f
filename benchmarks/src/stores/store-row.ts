import { failedRow, type Row, toRow } from '../report/report.ts';
import type { Measurement, Scenario } from '../scenarios/scenario.ts';
import type { StoreScenario } from './store-scenario.ts';

/** A figure of a store. `no mark`: nothing was promised. `not measured`: the remark says why. */
export type StoreRow = Omit<Row, 'verdict'> & { readonly verdict: Row['verdict'] | 'no mark' | 'not measured' };

const asScenario = (scenario: StoreScenario, adapter: string): Scenario => ({
  name: scenario.name,
  what: scenario.what,
  goal: scenario.goal(adapter) ?? { form: scenario.form, mark: 0 },
  everyAdapter: true,
  run: () => Promise.reject(new Error('store scenarios have a stage of their own')),
});

const withoutMark = (row: Row): StoreRow => ({
  ...row,
  mark: '',
  verdict: row.verdict === 'no verdict' ? 'no verdict' : 'no mark',
});

export function storeRow(scenario: StoreScenario, adapter: string, measurement: Measurement): StoreRow {
  const row = toRow(asScenario(scenario, adapter), adapter, measurement);
  return scenario.goal(adapter) === undefined ? withoutMark(row) : row;
}

export function failedStoreRow(scenario: StoreScenario, adapter: string, error: Error): StoreRow {
  const row = failedRow(asScenario(scenario, adapter), adapter, error);
  return scenario.goal(adapter) === undefined ? { ...row, mark: '' } : row;
}

export function notMeasured(scenario: StoreScenario, adapter: string, reason: string): StoreRow {
  return { ...failedStoreRow(scenario, adapter, new Error(reason)), verdict: 'not measured' };
}
