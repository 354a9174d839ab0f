import { always, type Infer, optional, type Schema, s } from './schema.ts';

const condition = s.message(
  'k8s.io.apimachinery.pkg.apis.meta.v1.Condition',
  "One observed condition of an object's state.",
  {
    type: always(1, s.string(), 'Type of the condition, in CamelCase, optionally with a domain prefix.'),
    status: always(2, s.string(), 'Whether it holds: True, False or Unknown.'),
    observedGeneration: optional(3, s.int64(), 'The metadata.generation that the observation is about.'),
    lastTransitionTime: always(4, s.time(), 'When status last changed.'),
    reason: always(5, s.string(), 'One CamelCase word for why the status changed last.'),
    message: always(6, s.string(), 'Text for people with the details of the last change.'),
  },
);
/** One observed condition of an object's state. */
export interface ConditionObject extends Infer<typeof condition> {}
/** Schema of an element of `status.conditions`. */
export const conditionSchema: Schema<ConditionObject> = condition;
