import { join } from 'node:path';
import { tool } from '@keelson/container-host';
import { type ContainerRecord, withTerminal } from '@keelson/container-monitor';
import type { OciBinary } from '../binary/oci-binary.ts';
import type { Programs } from './programs.ts';

/** The record that is written, in addition to the bundle, when a container is created. */
export interface OciRecord extends ContainerRecord {
  /** Path of the container's cgroup, which is the same in every hierarchy. */
  readonly cgroup: string;
  /** Directory that is the lower overlay layer of the container's root. Absent: the root is a copy of the image. */
  readonly lower?: string;
  /** Number of the signal that stops the container. */
  readonly stopSignal: number;
  /**
   * True when the container has its own PID namespace, so that the kernel kills all its processes with the first one.
   */
  readonly ownPids: boolean;
  /** Flags of the OCI runtime's command `run`, which starts containers with a terminal. */
  readonly runFlags: readonly string[];
}

export interface LaunchPlaces {
  readonly programs: Programs;
  readonly binary: OciBinary;
  /** `run/ID` */
  readonly run: string;
  readonly folder: string;
  readonly log: string;
  /** Directory of all pods. */
  readonly pods: string;
}

/** The command that the monitor of a container runs. */
export function launchCommand({ programs, binary, run, folder, log, pods }: LaunchPlaces, record: OciRecord): string[] {
  const { id, config, lower = '' } = record;
  const common = ['--bundle', folder, '--pid-file', join(folder, 'pid')];
  // Bidirectional mounts must propagate through this mount namespace to the machine.
  const shared = (config.mounts ?? []).some(({ propagation }) => propagation === 'bidirectional');
  const propagation = `--propagation=${shared ? 'unchanged' : 'slave'}`;
  const mounting = [
    tool('unshare'),
    '--mount',
    propagation,
    '--',
    '/bin/sh',
    programs.mountScript,
    run,
    folder,
    lower,
    '/bin/sh',
  ];
  if (config.tty) {
    const terminalCommand = binary.commandLine(log, 'run', ...record.runFlags, ...common, id);
    return withTerminal([...mounting, programs.terminalScript, run, folder, pods, ...terminalCommand]);
  }
  // The reaper is outside the mount namespace: a process in it would keep all mounts that existed at its creation in
  // use, including those of pods that were removed since.
  return [
    programs.reaper,
    ...mounting,
    programs.detachedScript,
    run,
    folder,
    ...binary.commandLine(log, 'run', '--detach', ...common, id),
  ];
}
