import assert from 'node:assert/strict';
import { compactionCases } from './cases/compaction-cases.ts';
import { compactionRaceCases } from './cases/compaction-race-cases.ts';
import { expiryCases } from './cases/expiry-cases.ts';
import { frontierCases } from './cases/frontier-cases.ts';
import { historyCases } from './cases/history-cases.ts';
import { keyValueCases } from './cases/key-value-cases.ts';
import { lifeCycleCases } from './cases/life-cycle-cases.ts';
import { listCases } from './cases/list-cases.ts';
import { modelCases } from './cases/model-cases.ts';
import { pastCases } from './cases/past-cases.ts';
import { restartCases } from './cases/restart-cases.ts';
import { revisionCases } from './cases/revision-cases.ts';
import { streamCases } from './cases/stream-cases.ts';
import { watchCases } from './cases/watch-cases.ts';
import { watchLoadCases } from './cases/watch-load-cases.ts';
import { writeCases } from './cases/write-cases.ts';
import type { StoreCase } from './harness.ts';

/** Every statement about stores; ids are stable and unique. */
export const storeCases: readonly StoreCase[] = [
  ...revisionCases,
  ...writeCases,
  ...keyValueCases,
  ...listCases,
  ...pastCases,
  ...watchCases,
  ...watchLoadCases,
  ...frontierCases,
  ...streamCases,
  ...compactionCases,
  ...compactionRaceCases,
  ...historyCases,
  ...expiryCases,
  ...lifeCycleCases,
  ...restartCases,
  ...modelCases,
];

assert.equal(new Set(storeCases.map((storeCase) => storeCase.id)).size, storeCases.length, 'case ids are unique');
