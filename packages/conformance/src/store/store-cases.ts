import assert from 'node:assert/strict';
import { compactionCases } from './cases/compaction-cases.ts';
import { expiryCases } from './cases/expiry-cases.ts';
import { keyValueCases } from './cases/key-value-cases.ts';
import { lifeCycleCases } from './cases/life-cycle-cases.ts';
import { listCases } from './cases/list-cases.ts';
import { modelCases } from './cases/model-cases.ts';
import { revisionCases } from './cases/revision-cases.ts';
import { streamCases } from './cases/stream-cases.ts';
import { watchCases } from './cases/watch-cases.ts';
import { writeCases } from './cases/write-cases.ts';
import type { StoreCase } from './harness.ts';

/** Every statement about stores; ids are stable and unique. */
export const storeCases: readonly StoreCase[] = [
  ...revisionCases,
  ...writeCases,
  ...keyValueCases,
  ...listCases,
  ...watchCases,
  ...streamCases,
  ...compactionCases,
  ...expiryCases,
  ...lifeCycleCases,
  ...modelCases,
];

assert.equal(new Set(storeCases.map((storeCase) => storeCase.id)).size, storeCases.length, 'case ids are unique');
