import type { ResourceClient } from '@keelson/core';
import { casesOf, registerCases, runCase, type TestFunction } from '../conformance-suite.ts';
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
import type { ClientCase, ClientHarness } from './harness.ts';
import { Part, type PartObject, Zone } from './suite-kinds.ts';

/** Every statement about an `ApiClient`, whatever its transport; ids are stable and unique. */
export const clientCases: readonly ClientCase[] = casesOf(
  createCases,
  readCases,
  listCases,
  pageCases,
  updateCases,
  patchCases,
  deleteCases,
  subresourceCases,
  watchCases,
  watchStreamCases,
  discoveryCases,
  concurrencyCases,
);

export interface ClientCaseOptions {
  /** Time limit of the case in milliseconds. Default 30 s. */
  readonly timeoutMs?: number;
}

/** Opens a client, runs one case with it and disposes of it. Rejects when the case fails or exceeds its time limit. */
export function runClientCase(
  harness: ClientHarness,
  clientCase: ClientCase,
  { timeoutMs = 30_000 }: ClientCaseOptions = {},
): Promise<void> {
  return runCase({ name: harness.name, timeoutMs }, clientCase, async (defer) => {
    const opened = await harness.open();
    defer(() => opened.dispose());
    const { client, namespaces } = opened;
    const allParts = client.resource(Part) as ResourceClient<PartObject>;
    return {
      client,
      namespaces,
      parts: allParts.namespace(namespaces[0]),
      allParts,
      zones: client.resource(Zone),
      warnings: opened.warnings ?? [],
      forgetHistory: async () => opened.forgetHistory?.(),
      part: (name, spec = {}, metadata = {}) => ({ metadata: { name, ...metadata }, spec }),
    };
  });
}

/**
 * Registers every case as a test. Titles are `NAME: ID: sentence`. A case that needs what the harness does not offer is
 * skipped, with the reason in its title. Every case opens a client of its own, so that cases may run concurrently.
 */
export function registerClientConformance(test: TestFunction, harness: ClientHarness): void {
  registerCases(
    test,
    harness.name,
    clientCases,
    ({ requires = [] }) => requires.filter((need) => !harness.offers.includes(need)),
    (clientCase) => runClientCase(harness, clientCase),
  );
}
