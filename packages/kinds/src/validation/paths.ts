import { fieldError } from '@keelson/core';
import type { Errors } from './checks.ts';

/** Rejects `..` as an element of a path. */
export function checkNoBackSteps(value: string, path: string, errors: Errors): void {
  if (value.split('/').includes('..')) errors.push(fieldError.invalid(path, value, "must not contain '..'"));
}

/** Requires a relative path without `..`. */
export function checkDescendingPath(value: string, path: string, errors: Errors): void {
  if (value.startsWith('/')) errors.push(fieldError.invalid(path, value, 'must be a relative path'));
  checkNoBackSteps(value, path, errors);
}

/** Requires a relative path without `..` that does not start with `..`, which the agent reserves (`..data`). */
export function checkVolumeFilePath(value: string, path: string, errors: Errors): void {
  checkDescendingPath(value, path, errors);
  if (value.startsWith('..') && !value.startsWith('../')) {
    errors.push(fieldError.invalid(path, value, "must not start with '..'"));
  }
}
