/** @public */
export { type ClaimOptions, claim } from './claim.ts';
/** @public */
export { type ConditionFields, conditionOf, isConditionTrue, withCondition } from './conditions.ts';
/** @public */
export {
  type AnyController,
  type ControllerDefinition,
  type ControllerHost,
  type Reconcile,
  type ReconcileResult,
  type ReconcileRun,
  type RelatedKind,
  relatedKind,
} from './controller-definition.ts';
/** @public */
export { ControllerManager, type ControllerManagerOptions } from './controller-manager.ts';
/** @public */
export { InformerPool } from './informer-pool.ts';
/** @public */
export { addFinalizer, patchStatus, removeFinalizer } from './object-patches.ts';
/** @public */
export type { RecordedWrite } from './observed-writes.ts';
/** @public */
export { controllerOf, isControlledBy, ownerReference } from './owner-references.ts';
/** @public */
export type { ReconcileRecord, Trigger } from './reconcile-trace.ts';
/** @public */
export { type ElectedOptions, runElected } from './run-elected.ts';
/** @public */
export type { ObjectReader, Selection, SharedInformer } from './shared-informer.ts';
