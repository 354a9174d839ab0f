import { createHttpClient } from '@keelson/client';
import {
  type ClientHarness,
  clientCases,
  clientSuiteKinds,
  type OpenedClient,
  registerClientConformance,
  storeDependentClientCases,
} from '@keelson/conformance';
import type { Store } from '@keelson/core/storage-adapter';
import test from 'ava';
import { createControlPlane } from 'keelson';

/** A store that is open and empty. */
export interface ContractStore {
  readonly store: Store;
  /** After the plane has closed the store. */
  remove(): Promise<void>;
}

/**
 * Registers the cases of clients that a store can change for a plane on stores of some adapter, over HTTP; all of them
 * with `KEELSON_TEST_FULL=1`.
 */
export function registerContractOn(name: string, open: () => Promise<ContractStore>): void {
  const harness: ClientHarness = {
    name: `HTTP on ${name}`,
    offers: ['warnings', 'forgetHistory', 'unknownFields'],
    async open(): Promise<OpenedClient> {
      const { store, remove } = await open();
      const plane = await createControlPlane({ storage: store, kinds: clientSuiteKinds, controllers: false });
      const warnings: string[] = [];
      const client = createHttpClient({ server: (await plane.listen()).url, onWarning: (text) => warnings.push(text) });
      return {
        client,
        namespaces: ['default', 'kube-public'],
        warnings,
        forgetHistory: async () => store.compact(await store.currentRevision()),
        dispose: async () => {
          client.close();
          await plane.close();
          await remove();
        },
      };
    },
  };
  // One after the other: cases measure themselves against time limits, and compaction is of a whole etcd.
  const cases = process.env['KEELSON_TEST_FULL'] === '1' ? clientCases : storeDependentClientCases;
  registerClientConformance(Object.assign(test.serial, { skip: test.skip }), harness, cases);
}
