import { type Infer, optional, type Schema, s } from '@keelson/core';

const preconditions = s.message(
  'k8s.io.apimachinery.pkg.apis.meta.v1.Preconditions',
  'What must be true of the stored object for a delete to go ahead.',
  {
    uid: optional(1, s.string(), 'UID that the object must have.'),
    resourceVersion: optional(2, s.string(), 'Resource version that the object must have.'),
  },
);
export interface Preconditions extends Infer<typeof preconditions> {}
export const PreconditionsSchema: Schema<Preconditions> = preconditions;

const deleteOptions = s.message('k8s.io.apimachinery.pkg.apis.meta.v1.DeleteOptions', 'How an object is to be deleted.', {
  gracePeriodSeconds: optional(
    1,
    s.int64(),
    'Seconds that the object is given to end on its own; 0 removes it at once, unset takes the default of the kind.',
  ),
  preconditions: optional(2, PreconditionsSchema, 'Conditions that must hold; otherwise the answer is 409 Conflict.'),
  orphanDependents: optional(
    3,
    s.bool(),
    'Old form of propagationPolicy: true keeps the dependents, false removes them. Not together with propagationPolicy.',
  ),
  propagationPolicy: optional(4, s.string(), 'What happens to dependents: Orphan, Background or Foreground.'),
  dryRun: optional(
    5,
    s.list(s.string(), { listType: 'atomic' }),
    'The single value All goes through every check without removing anything.',
  ),
  ignoreStoreReadErrorWithClusterBreakingPotential: optional(
    6,
    s.bool(),
    'Removes an object even though its stored form cannot be read, past finalizers and preconditions. Dangerous.',
  ),
});
export interface DeleteOptions extends Infer<typeof deleteOptions> {}
export const DeleteOptionsSchema: Schema<DeleteOptions> = deleteOptions;
