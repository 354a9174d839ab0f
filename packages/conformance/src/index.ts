export type {
  ClientCase,
  ClientCaseContext,
  ClientHarness,
  ClientRequirement,
  OpenedClient,
} from './client/harness.ts';
export { clientSuiteKinds, OldPart, Part, type PartObject, Zone } from './client/suite-kinds.ts';
export {
  type ClientCaseOptions,
  clientCases,
  registerClientConformance,
  runClientCase,
} from './client-suite.ts';
export { type Direction, FaultProxy, type FaultProxyOptions } from './fault-proxy/fault-proxy.ts';
export type { Retention } from './history/check-gone.ts';
export {
  type CheckOptions,
  checkHistory,
  describeVerdict,
  type HistoryCounts,
  type Verdict,
} from './history/check-history.ts';
export { loadHistory, saveHistory } from './history/history-file.ts';
export { type History, HistoryRecorder, type RecorderOptions } from './history/recorder.ts';
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
export type { Invariant, Violation } from './history/violation.ts';
export { Workload, type WorkloadOptions } from './history/workload/workload.ts';
export { ControlledStore } from './resource-storage/controlled-store.ts';
export type {
  ResourceStorageCase,
  ResourceStorageContext,
  ResourceStorageHarness,
  ResourceStorageRequirement,
} from './resource-storage/harness.ts';
export {
  registerResourceStorageConformance,
  resourceStorageCases,
  runResourceStorageCase,
} from './resource-storage-suite.ts';
export { joinLog, type RuntimeCase, RuntimeCaseContext, readLog } from './runtime/case-context.ts';
export {
  type Intent,
  missingRuntimeRequirements,
  type OpenedEngine,
  type Program,
  type RuntimeHarness,
  type RuntimeRequirement,
} from './runtime/harness.ts';
export { registerRuntimeConformance, runRuntimeCase, runtimeCases } from './runtime-suite.ts';
export { type FrozenStore, frozenStore } from './store/frozen-store.ts';
export {
  missingRequirements,
  type OpenedStore,
  type StoreCase,
  type StoreCaseContext,
  type StoreHarness,
  type StoreRequirement,
} from './store/harness.ts';
export { type PlainChange, type PlainEntry, StoreModel } from './store/model.ts';
export { storeDependentClientCases, storeDependentResourceStorageCases } from './store-dependent-cases.ts';
export { type RunOptions, registerStoreConformance, runStoreCase, storeCases } from './store-suite.ts';
export type { ConformanceCase, TestContext, TestFunction } from './suite/conformance-suite.ts';
export { Random } from './suite/random.ts';
