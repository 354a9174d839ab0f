export { type Eviction, EvictionSchema } from './eviction.ts';
export {
  type PodDisruptionBudget,
  PodDisruptionBudgetSchema,
  type PodDisruptionBudgetSpec,
  PodDisruptionBudgetSpecSchema,
  type PodDisruptionBudgetStatus,
  PodDisruptionBudgetStatusSchema,
} from './pod-disruption-budget.ts';
