export { attachStreams } from './container/attach-streams.ts';
export {
  type CollectedProcess,
  type CollectOptions,
  collectOutput,
  endOf,
  exitCodeOf,
  keptOutput,
} from './container/collect-output.ts';
export { type ContainerContext, createContainerContext } from './container/container-context.ts';
export { Inventory, type InventoryParts } from './container/inventory.ts';
export { MonitoredContainer } from './container/monitored-container.ts';
export { MonitoredRuntime, type MonitoredRuntimeParts } from './container/monitored-runtime.ts';
export { MonitoredSandbox } from './container/monitored-sandbox.ts';
export {
  commandOf,
  environmentOf,
  logPathOf,
  passable,
  prepareContainer,
  quote,
  signalName,
  signalNumber,
  spawnMonitor,
  stagingFolder,
  terminalResizer,
  terminalsWork,
  withTerminal,
} from './container/prepare-container.ts';
export { type CgroupOptions, Cgroups } from './machine/cgroups.ts';
export { type Account, findAccount } from './root/accounts.ts';
export { resolveInside } from './root/resolve-inside.ts';
export type { ContainerRecord, SandboxRecord } from './state/state-directory.ts';
export {
  type ExitRecord,
  isId,
  newId,
  type RunFileKind,
  RunFiles,
  StateDirectory,
  type WrittenExit,
} from './state/state-directory.ts';
