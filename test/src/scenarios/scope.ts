import type { TestFn } from 'ava';
import type { KubectlContext } from '../kubectl-cluster.ts';
import { manifestsOf } from '../manifests.ts';

/** Which scenarios run against a server. */
export interface Scope {
  /** Resources of the scenarios that run once per resource. */
  readonly resources: readonly string[];
  /** Resources whose objects are also changed in every way; the code for that does not depend on the kind. */
  readonly editedResources: readonly string[];
  /** Whether scenarios run that do not depend on the storage: discovery, explain, validation and output formats. */
  readonly independentOfStorage: boolean;
}

const allResources = Object.keys(manifestsOf('any'));
/** A kind that is stored as it is sent. */
const plainResource = 'configmaps';
/** A kind with a status and two API versions. */
const convertedResource = 'deployments.extensions';

/** All scenarios. `KEELSON_TEST_FULL=1`, which `npm run nightly` sets, runs them on every storage. */
export const everything: Scope = {
  resources: allResources,
  editedResources: allResources,
  independentOfStorage: true,
};

/** On the embedded storage each scenario runs, but objects of two kinds only are changed in every way. */
export const embedded: Scope = { ...everything, editedResources: [plainResource, convertedResource] };

/** What a further storage can change, by one kind: stores contain bytes, whatever the kind is. */
const storeDependent = (resource: string): Scope => ({
  resources: [resource],
  editedResources: [resource],
  independentOfStorage: false,
});
export const storeDependentOnEtcd = storeDependent(plainResource);
export const storeDependentOnPostgres = storeDependent(convertedResource);

const isFull = process.env['KEELSON_TEST_FULL'] === '1';
export const ofEmbedded: Scope = isFull ? everything : embedded;
export const ofEtcd: Scope = isFull ? everything : storeDependentOnEtcd;
export const ofPostgres: Scope = isFull ? everything : storeDependentOnPostgres;

/** Registers nothing: the scenarios run on another storage. */
export const unregistered = (() => {}) as unknown as TestFn<KubectlContext>;
