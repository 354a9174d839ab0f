import { join } from 'node:path';
import { tool, withTerminal } from '@keelson/container-monitor';
import type { OciBinary } from '../binary/oci-binary.ts';
import type { OciRecord } from '../container/oci-record.ts';
import type { Programs } from './programs.ts';

export interface LaunchPlaces {
  readonly programs: Programs;
  readonly binary: OciBinary;
  /** `run/ID` */
  readonly run: string;
  readonly folder: string;
  readonly log: string;
  /** Folder of all pods. */
  readonly pods: string;
}

/** The command that the monitor of a container runs. */
export function launchWords({ programs, binary, run, folder, log, pods }: LaunchPlaces, record: OciRecord): string[] {
  const { id, config, lower = '' } = record;
  const common = ['--bundle', folder, '--pid-file', join(folder, 'pid')];
  // Mounts that are to reach the machine must come past here.
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
    const words = binary.words(log, 'run', ...record.runFlags, ...common, id);
    return withTerminal([...mounting, programs.terminalScript, run, folder, pods, ...words]);
  }
  // The reaper stays outside: what lives in the namespace of the mounts holds all that was mounted then, pods that are
  // long gone included.
  return [
    programs.reaper,
    ...mounting,
    programs.detachedScript,
    run,
    folder,
    ...binary.words(log, 'run', '--detach', ...common, id),
  ];
}
