import assert from 'node:assert/strict';
import { cacheCases } from './cases/cache-cases.ts';
import { cacheFeedCases } from './cases/cache-feed-cases.ts';
import { createCases } from './cases/create-cases.ts';
import { deleteCases } from './cases/delete-cases.ts';
import { getCases } from './cases/get-cases.ts';
import { listCases } from './cases/list-cases.ts';
import { modelCases } from './cases/model-cases.ts';
import { pageCases } from './cases/page-cases.ts';
import { readPointCases } from './cases/read-point-cases.ts';
import { stateCases } from './cases/state-cases.ts';
import { updateCases } from './cases/update-cases.ts';
import { watchCases } from './cases/watch-cases.ts';
import { watchReadingCases } from './cases/watch-reading-cases.ts';
import { windowCases } from './cases/window-cases.ts';
import type { ResourceStorageCase } from './harness.ts';

/** Every statement about implementations of `ResourceStorage`; ids are stable and unique. */
export const resourceStorageCases: readonly ResourceStorageCase[] = [
  ...createCases,
  ...getCases,
  ...listCases,
  ...readPointCases,
  ...pageCases,
  ...updateCases,
  ...deleteCases,
  ...watchCases,
  ...watchReadingCases,
  ...stateCases,
  ...cacheCases,
  ...cacheFeedCases,
  ...windowCases,
  ...modelCases,
];

const ids = resourceStorageCases.map((resourceCase) => resourceCase.id);
assert.equal(new Set(ids).size, ids.length, 'case ids are unique');
