import type { DeleteOptions, ListOptions, MutateOptions, WatchOptions } from '@keelson/core';
import { type DeleteParameters, jsonText, type SelectParameters, type WriteParameters } from '@keelson/core/internal';

/** A value as a request body. */
export function jsonBody(value: unknown): { readonly bytes: Buffer; readonly format: 'json' } {
  return { bytes: Buffer.from(jsonText(value)), format: 'json' };
}

/** Parameters of a write; unknown fields cause warnings by default. */
export function writeParameters(options: MutateOptions): WriteParameters {
  return {
    dryRun: options.dryRun ?? false,
    ...(options.fieldValidation === undefined ? {} : { fieldValidation: options.fieldValidation }),
    ...(options.fieldManager === undefined ? {} : { fieldManager: options.fieldManager }),
    ...(options.force === undefined ? {} : { force: options.force }),
  };
}

/** Parameters of a delete. */
export function deleteParameters(options: DeleteOptions): DeleteParameters {
  const { gracePeriodSeconds, propagationPolicy, orphanDependents, preconditions, dryRun = false } = options;
  return {
    dryRun,
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(options.ignoreStoreReadErrorWithClusterBreakingPotential
      ? { ignoreStoreReadErrorWithClusterBreakingPotential: true }
      : {}),
    ...(propagationPolicy === undefined ? {} : { propagationPolicy }),
    ...(orphanDependents === undefined ? {} : { orphanDependents }),
    ...(preconditions?.uid === undefined ? {} : { uid: preconditions.uid }),
    ...(preconditions?.resourceVersion === undefined ? {} : { resourceVersion: preconditions.resourceVersion }),
  };
}

function selectParameters(options: ListOptions | WatchOptions): SelectParameters {
  const { labelSelector, fieldSelector, resourceVersion = '', resourceVersionMatch } = options;
  return {
    resourceVersion,
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    ...(resourceVersionMatch === undefined ? {} : { resourceVersionMatch }),
  };
}

/** Parameters of a list. */
export function listParameters(options: ListOptions): SelectParameters {
  return {
    ...selectParameters(options),
    ...(options.limit === undefined ? {} : { limit: options.limit }),
    ...(options.continue === undefined ? {} : { continue: options.continue }),
  };
}

/** Parameters of a watch. */
export function watchParameters(options: WatchOptions): SelectParameters {
  return {
    ...selectParameters(options),
    ...(options.allowWatchBookmarks === undefined ? {} : { allowWatchBookmarks: options.allowWatchBookmarks }),
    ...(options.sendInitialEvents === undefined ? {} : { sendInitialEvents: options.sendInitialEvents }),
  };
}
