export { attempt, CgroupError, type CgroupFiles, systemCgroupFiles } from './cgroup-files.ts';
export {
  type CgroupController,
  type CgroupHierarchies,
  type CgroupHierarchy,
  type CgroupLimits,
  findHierarchies,
  leastShares,
  mostShares,
  removeEmptyCgroup,
  weightOf,
} from './cgroup-hierarchies.ts';
export {
  type CgroupFolders,
  type CgroupUsage,
  cgroupFoldersOf,
  cgroupMembers,
  ranOutOfMemory,
  readCgroupUsage,
} from './cgroup-usage.ts';
export { hasCode, readIfPresent, removeIfPresent, removeUnfinished, replaceFile, writeAtomically } from './files.ts';
export { killedForMemory } from './kernel-log.ts';
export {
  isAlive,
  listProcesses,
  type ProcessIdentity,
  type ProcessStat,
  parseStat,
  readCommandLine,
  readStat,
  residentBytes,
  signalProcess,
} from './processes.ts';
export { findTool, overlayWorks, tool, toolEnvironment, toolPath, tryTool } from './tools.ts';
