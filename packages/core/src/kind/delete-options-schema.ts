import { type Infer, optional, type Schema, s } from './schema.ts';
import { typeMetaFields } from './type-meta-fields.ts';

const metaV1 = 'k8s.io.apimachinery.pkg.apis.meta.v1';

const preconditions = s.message(
  `${metaV1}.Preconditions`,
  'Conditions that the stored object must meet for a deletion.',
  {
    uid: optional(1, s.string(), 'UID that the object must have.', { presence: true }),
    resourceVersion: optional(2, s.string(), 'Resource version that the object must have.', { presence: true }),
  },
);
/** The conditions that the stored object must meet for a delete. */
export interface PreconditionsObject extends Infer<typeof preconditions> {}
export const preconditionsSchema: Schema<PreconditionsObject> = preconditions;

const deleteOptions = s.message(`${metaV1}.DeleteOptions`, 'How an object is to be deleted.', {
  ...typeMetaFields,
  gracePeriodSeconds: optional(
    1,
    s.int64(),
    'Seconds for a graceful termination; 0 deletes immediately, unset means the default of the kind.',
    { presence: true },
  ),
  preconditions: optional(2, preconditionsSchema, 'Conditions that must hold; otherwise the answer is 409 Conflict.'),
  orphanDependents: optional(
    3,
    s.bool(),
    'Deprecated, use propagationPolicy: true keeps the dependents, false deletes them. Not together with propagationPolicy.',
    { presence: true },
  ),
  propagationPolicy: optional(4, s.string(), 'What happens to dependents: Orphan, Background or Foreground.', {
    presence: true,
  }),
  dryRun: optional(
    5,
    s.list(s.string(), { listType: 'atomic' }),
    'The only value is All: every check is made and nothing is deleted.',
  ),
  ignoreStoreReadErrorWithClusterBreakingPotential: optional(
    6,
    s.bool(),
    'Deletes an object although its stored bytes cannot be decoded, without regard to finalizers and preconditions. Dangerous.',
    { presence: true },
  ),
});
/** Body of a DELETE request. */
export interface DeleteOptionsObject extends Infer<typeof deleteOptions> {}
export const deleteOptionsSchema: Schema<DeleteOptionsObject> = deleteOptions;
