import type { Pod } from '@keelson/kinds';
import type { AgentPaths } from '../../base/agent-paths.ts';
import { uidOf } from '../../base/pod/pod-spec.ts';
import type { HostFiles } from '../../machine/host/host-files.ts';
import { localFiles } from '../../machine/host/local-files.ts';
import { emptyDirsOnDisk, type Space } from './pod-consumption.ts';

/** Measures the disk space of pods at the moment of the call. A missing file uses no space. */
export interface DiskSpace {
  logs(uid: string, signal: AbortSignal): Promise<Space>;
  /**
   * Logs and empty directories. The regular statistics of volumes can be minutes old and may not contain the growth
   * that filled the disk.
   */
  files(pod: Pod, signal: AbortSignal): Promise<Space>;
}

/** Volumes are measured through `files`, logs in the file system of the agent. */
export function diskSpace(paths: AgentPaths, files: Pick<HostFiles, 'treeUsage'>): DiskSpace {
  const measure = (of: Pick<HostFiles, 'treeUsage'>, path: string, signal: AbortSignal) =>
    of.treeUsage(path, signal).catch(() => ({ bytes: 0, inodes: 0 }));
  const logs = (uid: string, signal: AbortSignal) => measure(localFiles, paths.podLogs(uid), signal);
  return {
    logs,
    async files(pod, signal) {
      const uid = uidOf(pod);
      let { bytes, inodes } = await logs(uid, signal);
      for (const name of emptyDirsOnDisk(pod)) {
        const found = await measure(files, paths.volume(uid, 'empty-dir', name), signal);
        bytes += found.bytes;
        inodes += found.inodes;
      }
      return { bytes, inodes };
    },
  };
}
