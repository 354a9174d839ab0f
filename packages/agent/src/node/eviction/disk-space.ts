import type { Pod } from '@keelson/kinds';
import type { AgentPaths } from '../../base/agent-paths.ts';
import { uidOf } from '../../base/pod/pod-spec.ts';
import type { HostFiles } from '../../machine/host/host-files.ts';
import { localFiles } from '../../machine/host/local-files.ts';
import { emptyDirsOnDisk, type Space } from './pod-consumption.ts';

/** Measures what pods have on the disk of the agent, right now. What is not there takes no space. */
export interface DiskSpace {
  logs(uid: string, signal: AbortSignal): Promise<Space>;
  /**
   * Logs and empty directories. The usual statistics of volumes are minutes old: the pod that fills the disk is not
   * seen in them.
   */
  files(pod: Pod, signal: AbortSignal): Promise<Space>;
}

/** Volumes are on `files`; logs are the agent's own, wherever volumes are. */
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
