export { type Condition, ConditionSchema } from './condition.ts';
export { type DeleteOptions, DeleteOptionsSchema, type Preconditions, PreconditionsSchema } from './delete-options.ts';
export {
  type LabelSelector,
  type LabelSelectorRequirement,
  LabelSelectorRequirementSchema,
  LabelSelectorSchema,
} from './label-selector.ts';
