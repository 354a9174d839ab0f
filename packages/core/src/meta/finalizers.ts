import { type FieldError, fieldError } from './field-error.ts';
import { qualifiedNameErrors } from './names.ts';

/** Keeps an object until its dependents have been cut loose. */
export const orphanFinalizer = 'orphan';
/** Keeps an object until the dependents that block it are gone. */
export const foregroundFinalizer = 'foregroundDeletion';

/** Finalizers that need no domain in front. */
const standard: ReadonlySet<string> = new Set(['kubernetes', orphanFinalizer, foregroundFinalizer]);

function nameErrors(finalizer: string): string[] {
  const errors = qualifiedNameErrors(finalizer);
  if (errors.length > 0 || finalizer.includes('/') || standard.has(finalizer)) return errors;
  return ['name is neither a standard finalizer name nor is it fully qualified'];
}

/** What is wrong with a list of finalizers that stands at `path`; api-conventions 5.4. */
export function finalizersErrors(finalizers: readonly string[] | undefined, path: string): FieldError[] {
  const given = finalizers ?? [];
  const errors = given.flatMap((finalizer) => nameErrors(finalizer).map((detail) => fieldError.invalid(path, finalizer, detail)));
  if (given.includes(orphanFinalizer) && given.includes(foregroundFinalizer)) {
    const detail = `finalizer ${orphanFinalizer} and ${foregroundFinalizer} cannot be both set`;
    errors.push(fieldError.invalid(path, given, detail));
  }
  return errors;
}

/** An object that is being deleted can only lose finalizers. */
export function newFinalizersErrors(now: readonly string[], before: readonly string[], path: string): FieldError[] {
  const added = [...new Set(now)].filter((finalizer) => !before.includes(finalizer)).sort();
  if (added.length === 0) return [];
  const detail = `no new finalizers can be added if the object is being deleted, found new finalizers ${JSON.stringify(added)}`;
  return [fieldError.forbidden(path, detail)];
}
