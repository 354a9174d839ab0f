import { fieldError } from '@keelson/core';
import type { Errors } from './errors.ts';

/** Refuses `..` as an element of a path. */
export function checkNoBackSteps(value: string, path: string, errors: Errors): void {
  if (value.split('/').includes('..')) errors.push(fieldError.invalid(path, value, "must not contain '..'"));
}

/** A relative path that stays below its start. */
export function checkDescendingPath(value: string, path: string, errors: Errors): void {
  if (value.startsWith('/')) errors.push(fieldError.invalid(path, value, 'must be a relative path'));
  checkNoBackSteps(value, path, errors);
}

/** A descending path whose first element the agent does not use itself (`..data`, `..2026_01_02`). */
export function checkVolumeFilePath(value: string, path: string, errors: Errors): void {
  checkDescendingPath(value, path, errors);
  if (value.startsWith('..') && !value.startsWith('../')) {
    errors.push(fieldError.invalid(path, value, "must not start with '..'"));
  }
}
