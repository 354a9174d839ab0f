import type { ResourceClient } from '@keelson/core';
import { concurrencyCases } from './client/cases/concurrency-cases.ts';
import { createCases } from './client/cases/create-cases.ts';
import { deleteCases } from './client/cases/delete-cases.ts';
import { discoveryCases } from './client/cases/discovery-cases.ts';
import { listCases } from './client/cases/list-cases.ts';
import { pageCases } from './client/cases/page-cases.ts';
import { patchCases } from './client/cases/patch-cases.ts';
import { readCases } from './client/cases/read-cases.ts';
import { subresourceCases } from './client/cases/subresource-cases.ts';
import { updateCases } from './client/cases/update-cases.ts';
import { watchCases } from './client/cases/watch-cases.ts';
import { watchStreamCases } from './client/cases/watch-stream-cases.ts';
import type { ClientCase, ClientHarness } from './client/harness.ts';
import { Part, type PartObject, Zone } from './client/suite-kinds.ts';
import { casesOf, caseTimeoutMs, registerCases, runCase, type TestFunction } from './suite/conformance-suite.ts';

/**
 * All cases for implementations of `ApiClient`, whatever their transport; the ids of the cases are stable and unique.
 */
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

/** Options of a run of one client case. */
export interface ClientCaseOptions {
  /** Time limit of the case in milliseconds. Default 60 s. */
  readonly timeoutMs?: number;
}

/** Opens a client, runs one case with it and disposes of it. Rejects when the case fails or exceeds its time limit. */
export function runClientCase(
  harness: ClientHarness,
  clientCase: ClientCase,
  { timeoutMs = caseTimeoutMs }: ClientCaseOptions = {},
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
 * Registers every case, or those given, as a test. Titles are `NAME: ID: sentence`. A case that needs what the harness
 * does not offer is skipped, with the reason in its title. Every case opens a client of its own, so that cases may run
 * concurrently.
 */
export function registerClientConformance(
  test: TestFunction,
  harness: ClientHarness,
  cases: readonly ClientCase[] = clientCases,
): void {
  registerCases(
    test,
    harness.name,
    cases,
    ({ requires = [] }) => requires.filter((need) => !harness.offers.includes(need)),
    (clientCase) => runClientCase(harness, clientCase),
  );
}
