import type { TestFn } from 'ava';
import type { KubectlContext } from '../kubectl-cluster.ts';
import { manifestsOf } from '../manifests.ts';

/** Which scenarios run against a server. */
export interface Scope {
  /** Resources of the scenarios that run once per resource. */
  readonly resources: readonly string[];
  /** Whether scenarios run that do not depend on the storage: discovery, explain, validation and output formats. */
  readonly independentOfStorage: boolean;
}

export const everything: Scope = { resources: Object.keys(manifestsOf('any')), independentOfStorage: true };

/** What a further storage can change: one kind that is stored as it is sent, one with a status and two API versions. */
export const storeDependent: Scope = {
  resources: ['configmaps', 'deployments.extensions'],
  independentOfStorage: false,
};

/** `KEELSON_TEST_FULL=1`, which `npm run nightly` sets, runs everything on every storage. */
export const ofStorage: Scope = process.env['KEELSON_TEST_FULL'] === '1' ? everything : storeDependent;

/** Registers nothing: the scenarios run on another storage. */
export const unregistered = (() => {}) as unknown as TestFn<KubectlContext>;
