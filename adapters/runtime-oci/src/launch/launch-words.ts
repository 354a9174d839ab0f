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
}

/** The command that the monitor of a container runs. */
export function launchWords({ programs, binary, run, folder, log }: LaunchPlaces, record: OciRecord): string[] {
  const { id, config, lower = '' } = record;
  const pidFile = join(folder, 'pid');
  const common = ['--bundle', folder, '--pid-file', pidFile];
  const inner = config.tty
    ? withTerminal([
        '/bin/sh',
        programs.terminalScript,
        run,
        folder,
        ...binary.words(log, 'run', ...record.runFlags, ...common, id),
      ])
    : [programs.reaper, '/bin/sh', programs.detachedScript, run, folder, ...binary.words(log, 'run', '--detach', ...common, id)];
  // Mounts that are to reach the machine must come past here.
  const shared = (config.mounts ?? []).some(({ propagation }) => propagation === 'bidirectional');
  const propagation = `--propagation=${shared ? 'unchanged' : 'slave'}`;
  return [tool('unshare'), '--mount', propagation, '--', '/bin/sh', programs.mountScript, run, folder, lower, ...inner];
}
