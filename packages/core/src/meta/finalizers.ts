import { type FieldError, fieldError, isFull } from './field-error.ts';
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

/** Validates the list of finalizers at `path`: see docs/reference/api-rules.md#labels-annotations-finalizers-owners. */
export function finalizersErrors(finalizers: readonly string[] | undefined, path: string): FieldError[] {
  const given = finalizers ?? [];
  const errors: FieldError[] = [];
  for (const finalizer of given) {
    if (isFull(errors)) break;
    for (const detail of nameErrors(finalizer)) errors.push(fieldError.invalid(path, finalizer, detail));
  }
  if (given.includes(orphanFinalizer) && given.includes(foregroundFinalizer)) {
    const detail = `finalizer ${orphanFinalizer} and ${foregroundFinalizer} cannot be both set`;
    errors.push(fieldError.invalid(path, given, detail));
  }
  return errors;
}

/** An object that is being deleted can only lose finalizers. */
export function newFinalizersErrors(now: readonly string[], before: readonly string[], path: string): FieldError[] {
  const known = new Set(before);
  const added = [...new Set(now)].filter((finalizer) => !known.has(finalizer)).sort();
  if (added.length === 0) return [];
  const detail = `no new finalizers can be added if the object is being deleted, found new finalizers ${JSON.stringify(added)}`;
  return [fieldError.forbidden(path, detail)];
}
