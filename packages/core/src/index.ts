// Entry point for those who declare kinds and use a control plane. Names with @public change only with a major version;
// names with @experimental may change in any version.

/** @public */
export {
  type ApiClient,
  type ApplyConfiguration,
  type ApplyOptions,
  type ClientWatchEvent,
  type DeleteOptions,
  type DiscoveredResource,
  type GetOptions,
  type ListOptions,
  type MutateOptions,
  PatchType,
  type ResourceClient,
  type WatchOptions,
} from './client/resource-client.ts';
/** @public */
export { isStatusError, type QualifiedResource, StatusError, statusErrors } from './errors/status-error.ts';
/** @public */
export { isStorageError, StorageError, StorageErrorCode, type StorageErrorDetails } from './errors/storage-error.ts';
/** @public */
export { ageColumn, nameColumn, sinceText } from './kind/columns.ts';
/** @public */
export { type ConditionObject, conditionSchema } from './kind/condition-schema.ts';
/** @public */
export type {
  ConnectCall,
  ConnectLocation,
  ConnectOptions,
  ConnectParameter,
  ConnectSubresource,
  ConnectVerb,
} from './kind/connect.ts';
/** @public */
export { type ColumnOptions, defineKind, type KindOptions, type ObjectOf } from './kind/define-kind.ts';
/** @public */
export type {
  Column,
  ColumnContext,
  ColumnType,
  Deprecation,
  FieldErrors,
  KindDefinition,
  KindNames,
  RowCondition,
  SelectableField,
  StorageConversion,
  Verb,
} from './kind/kind-definition.ts';
/** @public */
export {
  type LabelSelectorObject,
  type LabelSelectorRequirementObject,
  labelSelectorRequirementSchema,
  labelSelectorSchema,
} from './kind/label-selector-schema.ts';
/** @public */
export { listMetaSchema, objectMetaSchema, ownerReferenceSchema } from './kind/object-meta-schema.ts';
/** @public */
export {
  always,
  embedded,
  type Field,
  type FieldOptions,
  type FieldsType,
  filled,
  type Infer,
  inline,
  type ListTraits,
  type NumberTraits,
  optional,
  required,
  type Schema,
  type SchemaNode,
  type StringTraits,
  s,
} from './kind/schema.ts';
/** @public */
export type { PropagationPolicy, Strategy, StrategyContext } from './kind/strategy.ts';
/** @public */
export type { ParentAccess, SubresourceAnswer, SubresourceCall, SubresourceDefinition } from './kind/subresource.ts';
/** @public */
export { typeMetaFields } from './kind/type-meta-fields.ts';
/** @public */
export type { ReadVirtual, VirtualCall, VirtualKind } from './kind/virtual-kind.ts';
/** @public */
export {
  type AccessAttributes,
  type AccessDecision,
  type AccessRules,
  type AuthenticatedToken,
  type AuthenticateToken,
  type Authorizer,
  mastersAuthorizer,
  mastersGroup,
  type PathAccessRule,
  type ResourceAccessRule,
} from './meta/authorizer.ts';
/** @public */
export { DurationError, durationMs, durationOfMs, formatDuration, parseDuration } from './meta/duration.ts';
/** @public */
export { addErrors, type FieldError, FieldErrorReason, fieldError, isFull } from './meta/field-error.ts';
/** @public */
export { humanDuration } from './meta/human-duration.ts';
/** @public */
export { percentErrors, percentOf, resolveIntOrPercent } from './meta/int-or-string.ts';
/** @public */
export { isCIDR, isIP, isIPv4, isIPv6, isProxyableIP, portNumberErrors } from './meta/ip.ts';
/** @public */
export type { LabelOperator, LabelRequirement, Labels as LabelMap } from './meta/label-requirement.ts';
/** @public */
export {
  configMapKeyErrors,
  dns1035LabelErrors,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  envVarNameErrors,
  labelKeyErrors,
  labelSelectorErrors,
  labelsErrors,
  labelValueErrors,
  type NameRule,
  nameErrors,
  namePrefixErrors,
  pathSegmentErrors,
  portNameErrors,
  qualifiedNameErrors,
} from './meta/names.ts';
/** @public */
export {
  addQuantities,
  canonicalQuantity,
  compareQuantities,
  formatQuantity,
  parseQuantity,
  type Quantity,
  QuantityError,
  quantityMilliValue,
  quantityValue,
} from './meta/quantity.ts';
/** @public */
export { internalContext, type RequestContext, systemUser, type UserInfo } from './meta/request-context.ts';
/** @public */
export { maxRequirements, maxSelectorLength, SelectorError } from './meta/selector-error.ts';
/** @public */
export {
  everyField,
  everythingSelector,
  type FieldRequirement,
  type FieldSelector,
  fieldSelectorOf,
  type LabelSelector,
  type LabelSelectorSpec,
  labelSelectorOf,
  labelSetSelector,
  nothingSelector,
  parseFieldSelector,
  parseLabelSelector,
} from './meta/selectors.ts';
/** @public */
export { type Status, type StatusCause, type StatusDetails, StatusReason } from './meta/status.ts';
/** @public */
export { formatMicroTime, formatTime, type Instant, parseInstant, timeMs } from './meta/time.ts';
/** @public */
export {
  apiVersionOf,
  type GroupVersion,
  type GroupVersionKind,
  type GroupVersionResource,
  type KubeList,
  type KubeObject,
  type ListMeta,
  type ManagedFieldsEntry,
  type MicroTime,
  type ObjectMeta,
  type OwnerReference,
  parseApiVersion,
  type Scope,
  type Stored,
  type StoredMeta,
  type Time,
  type TypeMeta,
} from './meta/types.ts';
/** @public */
export type { AdmissionOperation, AdmissionPlugin, AdmissionRequest, OperationOptions } from './registry/admission.ts';
/** @public */
export {
  annotationsErrors,
  finalizersErrors,
  foregroundFinalizer,
  maxAnnotationBytes,
  newFinalizersErrors,
  type ObjectMetaRules,
  orphanFinalizer,
  validateObjectMeta,
  validateObjectMetaUpdate,
} from './registry/common-fields.ts';
