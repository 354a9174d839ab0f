export {
  type ApiClient,
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
export {
  DocumentError,
  type DocumentErrorReason,
  isDocumentError,
  type ParsedDocument,
} from './codec/document-error.ts';
export { maxJsonDepth, parseJson } from './codec/json.ts';
export { jsonText, parseJsonText } from './codec/json-numbers.ts';
export {
  type Brand,
  bodyMedia,
  contentMediaType,
  defaultBrand,
  jsonMediaType,
  type Media,
  type MediaRange,
  mediaTypeOf,
  parseMediaRange,
  patchMediaTypes,
  patchTypeOfContent,
  protobufMediaType,
  yamlMediaType,
} from './codec/media-type.ts';
export { mediaTypesOf, type Negotiated, negotiate, type Offer } from './codec/negotiation.ts';
export { objectCodecOf } from './codec/object-codec.ts';
export { encodeDocument } from './codec/printed-form.ts';
export { listSchemaOf } from './codec/protobuf/document-schemas.ts';
export { decodeEnvelope, type Envelope, encodeEnvelope, isEnvelope } from './codec/protobuf/envelope.ts';
export {
  hasProtobufForm,
  type ProtobufDecoder,
  type ProtobufEncoder,
  protobufDecoderOf,
  protobufEncoderOf,
} from './codec/protobuf/protobuf-codec.ts';
export {
  encodeProtobufObject,
  type ProtobufBodyType,
  parseProtobufBody,
} from './codec/protobuf/protobuf-document.ts';
export { encodeProtobufDocument, encodeProtobufStatus, protobufForms } from './codec/protobuf/protobuf-form.ts';
export { decodeProtobufEvent, type ProtobufEvent } from './codec/protobuf/protobuf-frame.ts';
export { isProtobufSyntaxError, ProtobufSyntaxError } from './codec/protobuf/wire.ts';
export {
  type AnswerShape,
  type FormBuilder,
  type FormOffer,
  metaVersions,
  Representations,
  type RepresentationsOptions,
} from './codec/representations.ts';
export { servedJson, storedJson } from './codec/served-json.ts';
export type {
  EventPair,
  FormRequest,
  FormTarget,
  IncludeObject,
  ListBody,
  ListEnvelope,
  ListMetadata,
  ListPage,
  WatchForm,
  WireForm,
} from './codec/wire-form.ts';
export { type PieceSource, pieceBytes, representationId } from './codec/wire-form.ts';
export { maxYamlBytes, parseYaml, toYaml } from './codec/yaml.ts';
export { aggregatedDiscoveryMediaType, apiGroupDiscoveryList } from './discovery/aggregated-discovery.ts';
export { apiGroup, apiGroupList, apiVersions } from './discovery/api-groups.ts';
export { apiResourceList, storageVersionHash } from './discovery/api-resource-list.ts';
export type {
  AggregatedDiscoveryVersion,
  APIGroup,
  APIGroupDiscovery,
  APIGroupDiscoveryList,
  APIGroupList,
  APIResource,
  APIResourceDiscovery,
  APIResourceList,
  APISubresourceDiscovery,
  APIVersionDiscovery,
  APIVersions,
  GroupVersionForDiscovery,
  ServerAddressByClientCIDR,
} from './discovery/discovery-types.ts';
export { printableText } from './errors/printable-text.ts';
export { isStatusError, type QualifiedResource, StatusError, statusErrors } from './errors/status-error.ts';
export { isStorageError, StorageError, StorageErrorCode, type StorageErrorDetails } from './errors/storage-error.ts';
export { type ConditionObject, conditionSchema } from './kind/condition-schema.ts';
export type {
  ConnectCall,
  ConnectLocation,
  ConnectOptions,
  ConnectParameter,
  ConnectSubresource,
  ConnectVerb,
} from './kind/connect.ts';
export { type Decoded, type Decoder, DecodeTypeError, decoderOf, isDecodeTypeError } from './kind/decoder.ts';
export { defineKind, type KindOptions, type ObjectOf } from './kind/define-kind.ts';
export {
  type DeleteOptionsObject,
  deleteOptionsSchema,
  type PreconditionsObject,
  preconditionsSchema,
} from './kind/delete-options-schema.ts';
export type { JsonSchema } from './kind/json-schema.ts';
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
export {
  type LabelSelectorObject,
  type LabelSelectorRequirementObject,
  labelSelectorRequirementSchema,
  labelSelectorSchema,
} from './kind/label-selector-schema.ts';
export { listMetaSchema, objectMetaSchema, ownerReferenceSchema } from './kind/object-meta-schema.ts';
export {
  annotationsErrors,
  maxAnnotationBytes,
  type ObjectMetaRules,
  validateObjectMeta,
  validateObjectMetaUpdate,
} from './kind/object-meta-validation.ts';
export {
  jsonSchemaOf,
  kindComponentName,
  listComponentName,
  openApiSchemas,
  patchComponent,
} from './kind/open-api-schema.ts';
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
export {
  childField,
  childSchema,
  type ListNode,
  type MapNode,
  type MessageNode,
  messageNode,
} from './kind/schema-walk.ts';
export { type StatusObject, statusSchema } from './kind/status-schema.ts';
export type { PropagationPolicy, Strategy, StrategyContext } from './kind/strategy.ts';
export type { ParentAccess, SubresourceAnswer, SubresourceCall, SubresourceDefinition } from './kind/subresource.ts';
export { typeMetaFields } from './kind/type-meta-fields.ts';
export type { VirtualCall, VirtualKind } from './kind/virtual-kind.ts';
export { zeroValue } from './kind/zero-value.ts';
export { addAbortListener, removeAbortListener } from './meta/abort-listeners.ts';
export {
  type AccessAttributes,
  type AccessDecision,
  type AccessRules,
  type AuthenticateToken,
  type Authorizer,
  mastersAuthorizer,
  mastersGroup,
  type PathAccessRule,
  type ResourceAccessRule,
} from './meta/authorizer.ts';
export { canonicalBase64 } from './meta/base64.ts';
export { DurationError, durationMs, durationOfMs, formatDuration, parseDuration } from './meta/duration.ts';
export { addErrors, type FieldError, FieldErrorReason, fieldError, isFull } from './meta/field-error.ts';
export {
  everyField,
  type FieldRequirement,
  type FieldSelector,
  fieldSelectorOf,
  parseFieldSelector,
} from './meta/field-selector.ts';
export { finalizersErrors, foregroundFinalizer, newFinalizersErrors, orphanFinalizer } from './meta/finalizers.ts';
export { humanDuration } from './meta/human-duration.ts';
export { percentErrors, percentOf, resolveIntOrPercent } from './meta/int-or-string.ts';
export { isCIDR, isIP, isIPv4, isIPv6, isProxyableIP, portNumberErrors } from './meta/ip.ts';
export { labelSelectorErrors, labelsErrors } from './meta/label-errors.ts';
export type { LabelOperator, LabelRequirement, Labels as LabelMap } from './meta/label-requirement.ts';
export {
  everythingSelector,
  type LabelSelector,
  type LabelSelectorSpec,
  labelSelectorOf,
  labelSetSelector,
  nothingSelector,
  parseLabelSelector,
} from './meta/label-selector.ts';
export {
  configMapKeyErrors,
  dns1035LabelErrors,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  envVarNameErrors,
  labelKeyErrors,
  labelValueErrors,
  type NameRule,
  nameErrors,
  namePrefixErrors,
  pathSegmentErrors,
  portNameErrors,
  qualifiedNameErrors,
} from './meta/names.ts';
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
export { internalContext, type RequestContext, systemUser, type UserInfo } from './meta/request-context.ts';
export { maxRequirements, maxSelectorLength, SelectorError } from './meta/selector-error.ts';
export { type Status, type StatusCause, type StatusDetails, StatusReason } from './meta/status.ts';
export { formatMicroTime, formatTime, type Instant, parseInstant, timeMs } from './meta/time.ts';
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
  type Time,
  type TypeMeta,
} from './meta/types.ts';
export { openApiV3Document, openApiV3Index } from './openapi/open-api-document.ts';
export { type KindSource, OpenApiDocuments, type OpenApiFile, type SwaggerForm } from './openapi/open-api-documents.ts';
export type {
  OpenApiDocument,
  OpenApiInfo,
  OpenApiOperation,
  OpenApiPathItem,
  OpenApiSchema,
  OpenApiV3Index,
} from './openapi/open-api-types.ts';
export { type OperationSubject, operationId } from './openapi/operation-id.ts';
export { openApiV2Document } from './openapi/swagger-document.ts';
export type { SwaggerDocument, SwaggerSchema } from './openapi/swagger-types.ts';
export { applyJsonPatch, type JsonPatchLimits } from './patch/json-patch.ts';
export { applyMergePatch } from './patch/merge-patch.ts';
export { isPatchError, PatchError, type PatchErrorKind } from './patch/patch-error.ts';
export { applyStrategicMergePatch } from './patch/strategic-merge-patch.ts';
export type { AdmissionOperation, AdmissionPlugin, AdmissionRequest } from './registry/admission.ts';
export { createResourceRegistry, type RegistryOptions } from './registry/create-registry.ts';
export { type NamespaceLifecycleOptions, namespaceLifecycle } from './registry/namespace-lifecycle.ts';
export type { NameGenerator } from './registry/resource-binding.ts';
export {
  type Answer,
  answerValue,
  type Body,
  type ConnectParameters,
  type DeleteParameters,
  type ExportParameters,
  type FieldValidation,
  type ListAnswer,
  type PatchBody,
  type ResourceRegistry,
  type ResourceService,
  type SelectParameters,
  servedHead,
  servedOwnership,
  servedValue,
  type Target,
  type WriteParameters,
} from './registry/resource-service.ts';
export { type FailedOperation, translateError, watchErrorStatus } from './registry/translate-error.ts';
export { type Clock, systemClock } from './runtime/clock.ts';
export { FakeClock } from './runtime/fake-clock.ts';
export { guardedLogger, type LogLineLevel, type LogSink } from './runtime/guarded-logger.ts';
export { type LogFields, type Logger, silentLogger } from './runtime/logger.ts';
export {
  type Counter,
  type Gauge,
  type Histogram,
  type Labels,
  type MetricOptions,
  type Metrics,
  noMetrics,
} from './runtime/metrics.ts';
export { makePrivateDirectory, tightenMode } from './runtime/private-path.ts';
export { type Service, ServiceHost } from './runtime/service-host.ts';
export type { StorageAdapter } from './runtime/storage-adapter.ts';
export {
  type Bind,
  type BindingModule,
  ClockToken,
  LoggerToken,
  MetricsToken,
  StoreToken,
  type Token,
  token,
} from './runtime/tokens.ts';
export { eventLoopTurns, TurnQueue } from './runtime/turn-queue.ts';
export {
  parseRequestAttributes,
  QueryParameters,
  type RequestAttributes,
  type ResourceVerb,
} from './scope/request-attributes.ts';
export { collectionPrefix, kindPrefix, objectKey, storageKindOf } from './scope/storage-key.ts';
export { type AllowedHosts, WebPageGuard } from './scope/web-page-guard.ts';
export { AdvanceWaiters, streamClosed } from './storage/advance-waiters.ts';
export { ByteBudget, type Droppable } from './storage/byte-budget.ts';
export { Coalesced } from './storage/coalesced.ts';
export { type ContinueTokenOptions, type ContinueTokens, createContinueTokens } from './storage/continue-token.ts';
export { createDirectStorages, type DirectStoragesOptions } from './storage/direct-storages.ts';
export { encodeEvents } from './storage/event-batch.ts';
export { LogWatchStream } from './storage/log-watch-stream.ts';
export { ObjectList } from './storage/object-list.ts';
export type {
  EventRepresentation,
  ListPosition,
  ObjectCodec,
  ObjectPredicate,
  Pin,
  ReadPoint,
  Representation,
  ResourceStorage,
  ResourceWatch,
  StorageListOptions,
  StorageWatchOptions,
  StoredList,
  UpdateDecision,
  UpdateOutcome,
  WatchEvent,
  WatchEventType,
  WriteOptions,
} from './storage/resource-storage.ts';
export type { ResourceStorages } from './storage/resource-storages.ts';
export { withListBlueprint } from './storage/shared-watch-event.ts';
export {
  defaultStorageBudgets,
  type ObjectSource,
  pickBudgets,
  reportBudgets,
  type StorageBudgets,
  StorageMemory,
} from './storage/storage-memory.ts';
export {
  type Change,
  type Entry,
  type Key,
  type KeyRange,
  type ListChunk,
  prefixRange,
  type ReadOptions,
  type Revision,
  type Store,
  type StoreCapabilities,
  type StoreIdentity,
  type WatchBatch,
  type WatchStream,
  type WriteOp,
  type WriteResult,
} from './storage/store.ts';
export {
  checkKey,
  checkNotCompacted,
  compareKeys,
  maxKeyBytes,
  OrderedRange,
  orderedForm,
  throwIfAborted,
} from './storage/store-checks.ts';
export {
  metadataOffset,
  type SelectableAttributes,
  StoredObject,
  spliceResourceVersion,
} from './storage/stored-object.ts';
export { type ChangeLog, WatchHub } from './storage/watch-hub.ts';
export { type CachedStoragesOptions, createCachedStorages } from './watch-cache/cached-storages.ts';
export type { WindowLimits } from './watch-cache/event-window.ts';
