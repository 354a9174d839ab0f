// Entry point for the suites that adapters and clients must pass, and for checked histories.

/** @public */
export type {
  ClientCase,
  ClientCaseContext,
  ClientHarness,
  ClientRequirement,
  OpenedClient,
} from './client/harness.ts';
/** @public */
export { clientSuiteKinds, OldPart, Part, type PartObject, Zone } from './client/suite-kinds.ts';
/** @public */
export {
  type ClientCaseOptions,
  clientCases,
  registerClientConformance,
  runClientCase,
} from './client-suite.ts';
/** @public */
export { type Direction, FaultProxy, type FaultProxyOptions } from './fault-proxy/fault-proxy.ts';
/** @public */
export type { Retention } from './history/check-gone.ts';
/** @public */
export {
  type CheckOptions,
  checkHistory,
  describeVerdict,
  type HistoryCounts,
  type Verdict,
} from './history/check-history.ts';
/** @public */
export { loadHistory, saveHistory } from './history/history-file.ts';
/** @public */
export { type History, HistoryRecorder, type RecorderOptions } from './history/recorder.ts';
/** @public */
export type {
  FieldChanges,
  Fields,
  HistoryRecord,
  LabelTerm,
  ReadAt,
  Reply,
  SeenObject,
  Selection,
  WatchOpened,
  WriteOperation,
} from './history/records.ts';
/** @public */
export type { Invariant, Violation } from './history/violation.ts';
/** @public */
export { Workload, type WorkloadOptions } from './history/workload/workload.ts';
/** @public */
export { ControlledStore } from './resource-storage/controlled-store.ts';
/** @public */
export type {
  ResourceStorageCase,
  ResourceStorageContext,
  ResourceStorageHarness,
  ResourceStorageRequirement,
} from './resource-storage/harness.ts';
/** @public */
export {
  registerResourceStorageConformance,
  resourceStorageCases,
  runResourceStorageCase,
} from './resource-storage-suite.ts';
/** @public */
export { joinLog, type RuntimeCase, RuntimeCaseContext, readLog } from './runtime/case-context.ts';
/** @public */
export {
  type CommonSandbox,
  type Intent,
  missingRuntimeRequirements,
  type OpenedEngine,
  type Program,
  type RuntimeHarness,
  type RuntimeRequirement,
} from './runtime/harness.ts';
/** @public */
export { registerRuntimeConformance, runRuntimeCase, runtimeCases } from './runtime-suite.ts';
/** @public */
export { type FrozenStore, frozenStore } from './store/frozen-store.ts';
/** @public */
export {
  missingRequirements,
  type OpenedStore,
  type StoreCase,
  type StoreCaseContext,
  type StoreHarness,
  type StoreRequirement,
} from './store/harness.ts';
/** @public */
export { type PlainChange, type PlainEntry, StoreModel } from './store/model.ts';
/** @public */
export { storeDependentClientCases, storeDependentResourceStorageCases } from './store-dependent-cases.ts';
/** @public */
export { type RunOptions, registerStoreConformance, runStoreCase, storeCases } from './store-suite.ts';
/** @public */
export type { ConformanceCase, TestContext, TestFunction } from './suite/conformance-suite.ts';
/** @public */
export { Random } from './suite/random.ts';
