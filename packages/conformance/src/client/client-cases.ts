import { concurrencyCases } from './cases/concurrency-cases.ts';
import { createCases } from './cases/create-cases.ts';
import { deleteCases } from './cases/delete-cases.ts';
import { discoveryCases } from './cases/discovery-cases.ts';
import { listCases } from './cases/list-cases.ts';
import { pageCases } from './cases/page-cases.ts';
import { patchCases } from './cases/patch-cases.ts';
import { readCases } from './cases/read-cases.ts';
import { subresourceCases } from './cases/subresource-cases.ts';
import { updateCases } from './cases/update-cases.ts';
import { watchCases } from './cases/watch-cases.ts';
import { watchStreamCases } from './cases/watch-stream-cases.ts';
import type { ClientCase } from './harness.ts';

/** Everything an `ApiClient` must do, however it reaches its server. */
export const clientCases: readonly ClientCase[] = [
  ...createCases,
  ...readCases,
  ...listCases,
  ...pageCases,
  ...updateCases,
  ...patchCases,
  ...deleteCases,
  ...subresourceCases,
  ...watchCases,
  ...watchStreamCases,
  ...discoveryCases,
  ...concurrencyCases,
];
