// Entry point for the packages of this repository. It has no stability promise: names may change in any version.

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
export { objectCodecOf, servedJson, storedJson } from './codec/object-codec.ts';
export { encodeDocument } from './codec/printed-form.ts';
export { listSchemaOf } from './codec/protobuf/document-schemas.ts';
export {
  decodeProtobufEvent,
  encodeProtobufObject,
  hasProtobufForm,
  type ProtobufBodyType,
  type ProtobufDecoder,
  type ProtobufEncoder,
  type ProtobufEvent,
  parseProtobufBody,
  protobufDecoderOf,
  protobufEncoderOf,
} from './codec/protobuf/protobuf-codec.ts';
export { encodeProtobufDocument, encodeProtobufStatus, protobufForms } from './codec/protobuf/protobuf-form.ts';
export {
  decodeEnvelope,
  type Envelope,
  encodeEnvelope,
  isEnvelope,
  isProtobufSyntaxError,
  ProtobufSyntaxError,
} from './codec/protobuf/wire.ts';
export {
  type AnswerShape,
  type FormBuilder,
  type FormOffer,
  metaVersions,
  Representations,
  type RepresentationsOptions,
} from './codec/representations.ts';
export type {
  EventPair,
  FormRequest,
  FormTarget,
  IncludeObject,
  ListBody,
  ListEnvelope,
  ListMetadata,
  ListPage,
  ListParts,
  WatchForm,
  WireForm,
} from './codec/wire-form.ts';
export { representationId } from './codec/wire-form.ts';
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
export {
  DocumentError,
  type DocumentErrorReason,
  isDocumentError,
  type ParsedDocument,
} from './json/document-error.ts';
export {
  copyJson,
  equalJson,
  isJsonObject,
  jsonText,
  maxJsonDepth,
  parseJson,
  parseJsonObject,
  parseJsonText,
  setOwn,
} from './json/json.ts';
export { type Decoded, type Decoder, DecodeTypeError, decoderOf, isDecodeTypeError } from './kind/decoder.ts';
export {
  type DeleteOptionsObject,
  deleteOptionsSchema,
  type PreconditionsObject,
  preconditionsSchema,
} from './kind/delete-options-schema.ts';
export type { JsonSchema } from './kind/json-schema.ts';
export {
  jsonSchemaOf,
  kindComponentName,
  listComponentName,
  openApiSchemas,
  patchComponent,
} from './kind/open-api-schema.ts';
export {
  childField,
  childSchema,
  type ListNode,
  type MapNode,
  type MessageNode,
  messageNode,
  zeroValue,
} from './kind/schema-walk.ts';
export { type StatusObject, statusSchema } from './kind/status-schema.ts';
export { canonicalBase64 } from './meta/base64.ts';
export { checkExpression } from './meta/names.ts';
export type { AnyObject } from './meta/types.ts';
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
export { type SwaggerPart, swaggerPart } from './openapi/swagger-part.ts';
export type { SwaggerDocument, SwaggerSchema } from './openapi/swagger-types.ts';
export {
  type AnyOption,
  defaultText,
  descriptionOf,
  flagsHelp,
  type GivenValues,
  mergeValues,
  type Option,
  parseArguments,
  parseConfigDocument,
  parseFields,
  parseVariables,
  type ValuesOf,
} from './options/option-table.ts';
export { didYouMean, didYouMeanOneOf, UsageError, withoutPassword } from './options/usage-error.ts';
export {
  bool,
  duration,
  float,
  integer,
  listOf,
  nonNegativeDuration,
  oneOf,
  parseBool,
  rejectUnknownKeys,
  requiredText,
  splitCsv,
  text,
  textType,
  type ValueType,
  valueType,
  wholeNumber,
  wrongValue,
} from './options/value-types.ts';
export { applyJsonPatch, type JsonPatchLimits } from './patch/json-patch.ts';
export { applyMergePatch } from './patch/merge-patch.ts';
export { isPatchError, PatchError, type PatchErrorKind } from './patch/patch-budget.ts';
export { applyStrategicMergePatch } from './patch/strategic-merge-patch.ts';
export {
  AdmissionChain,
  type NamespaceLifecycleOptions,
  namespaceLifecycle,
} from './registry/admission.ts';
export type { AuditedRequest, Auditor, RequestAudit } from './registry/audit.ts';
export { randomName } from './registry/create-operation.ts';
export { createResourceRegistry, type RegistryOptions } from './registry/create-registry.ts';
export type { Allocation, ObjectAllocator } from './registry/object-allocator.ts';
export { selectionOf } from './registry/predicate.ts';
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
  type ServedKind,
  servedHead,
  servedOwnership,
  servedValue,
  type Target,
  type WriteParameters,
} from './registry/resource-service.ts';
export { type FailedOperation, translateError, watchErrorStatus } from './registry/translate-error.ts';
export { hopByHopHeaders } from './scope/hop-by-hop.ts';
export {
  parseRequestAttributes,
  QueryParameters,
  type RequestAttributes,
  type ResourceVerb,
} from './scope/request-attributes.ts';
export { type AllowedHosts, WebPageGuard } from './scope/web-page-guard.ts';
export { ByteBudget, type Droppable } from './storage/byte-budget.ts';
export { type ContinueTokenOptions, type ContinueTokens, createContinueTokens } from './storage/continue-token.ts';
export { createDirectStorages, type DirectStoragesOptions } from './storage/direct-storages.ts';
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
export { type PieceSource, pieceBytes, type SharedPart } from './storage/resource-storage.ts';
export type { ResourceStorages } from './storage/resource-storages.ts';
export {
  bookmarkEvent,
  encodeEvents,
  PullWatch,
  SharedWatchEvent,
  withListBlueprint,
} from './storage/resource-watch.ts';
export { kindPrefix, objectKey, storageKindOf } from './storage/storage-key.ts';
export {
  defaultStorageBudgets,
  type ObjectSource,
  pickBudgets,
  reportBudgets,
  type StorageBudgets,
  StorageMemory,
} from './storage/storage-memory.ts';
export {
  metadataOffset,
  type SelectableAttributes,
  StoredObject,
  spliceResourceVersion,
} from './storage/stored-object.ts';
export {
  damageOf,
  encryptedPrefix,
  encryptionKeyOf,
  maxKeyNameLength,
  tokenSecretKey,
} from './storage/stored-value.ts';
export { type CachedStoragesOptions, createCachedStorages } from './watch-cache/cached-storage.ts';
export type { WindowLimits } from './watch-cache/event-window.ts';
