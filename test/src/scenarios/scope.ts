import { manifestsOf } from '../manifests.ts';

/** Resources of the scenarios that run once per resource. */
export const allResources = Object.keys(manifestsOf('any'));

/**
 * Resources whose objects are changed by every command in a normal run: one that is stored as it is sent, and one with
 * a status and two API versions. The code for changes does not depend on the kind.
 */
export const fewResources: readonly string[] = ['configmaps', 'deployments.extensions'];

/**
 * Resources whose objects are changed and deleted by every command: all with `KEELSON_TEST_FULL=1`, as in `npm run
 * nightly`.
 */
export const changedResources = process.env['KEELSON_TEST_FULL'] === '1' ? allResources : fewResources;
