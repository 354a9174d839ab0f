/** @public */
export {
  type ControllerDefinition,
  type ControllerHost,
  type Reconcile,
  type ReconcileResult,
  type ReconcileRun,
  type RelatedKind,
  relatedKind,
} from './controller-definition.ts';
/** @public */
export { ControllerManager } from './controller-manager.ts';
/** @public */
export { controllerOf, isControlledBy, ownerReference } from './owner-references.ts';
/** @public */
export type { ObjectReader } from './shared-informer.ts';
