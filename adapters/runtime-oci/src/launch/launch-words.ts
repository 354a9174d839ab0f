import { join } from 'node:path';
import { findTool, tool } from '@keelson/container-monitor';
import type { OciBinary } from '../binary/oci-binary.ts';
import type { OciRecord } from '../container/oci-record.ts';
import type { Programs } from './programs.ts';

/** One word for a POSIX shell, whatever is in it. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** Whether this machine has what gives a process a terminal of its own. */
export function hasTerminals(): boolean {
  return ['script', 'stty', 'tty'].every((name) => findTool(name) !== undefined);
}

/** A command that has a terminal, whose other side are the standard streams of what is returned. */
export function withTerminal(words: readonly string[]): string[] {
  // The words are for its shell; the typescript that it writes is thrown away.
  return [tool('script'), '-q', '-e', '-f', '-c', `exec ${words.map(quote).join(' ')}`, '/dev/null'];
}

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
  // The reaper stays outside: what lives in the namespace of the mounts holds all that was mounted then, pods that are long gone included.
  return [
    programs.reaper,
    ...mounting,
    programs.detachedScript,
    run,
    folder,
    ...binary.words(log, 'run', '--detach', ...common, id),
  ];
}
